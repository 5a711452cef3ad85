"""Kafka's bytes on disk, their copies in the object store, and the metadata that ties the two together."""
