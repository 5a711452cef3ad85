"""The upkeep of all tables of evidence, as `seawall audit maintain` and a continuous ingest do it."""
