"""What `seawall backup` needs of the cluster, the bucket and this host, joined."""
