"""How Spark's Python workers begin, in a session of ours on this machine: see `spark`."""
