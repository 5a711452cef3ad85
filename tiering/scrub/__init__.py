"""Whether what the metadata says of the bucket is there, byte for byte: a little at a time, for ever."""
