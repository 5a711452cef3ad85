"""Real servers for the tests, data made by real clients, and Kafka's own tools as the oracle of formats.

fixtures.py  pytest fixtures: broker, cluster3, kip405_broker, secure_broker, bucket, spark, oracle, corpus
secure.py    a broker whose clients come by TLS and SCRAM
produce.py   the produce kit: topics, producers that note what they wrote
cases_*.py   one function a hard case
corpus.py    every case made once and its log dirs copied, so that readers' tests need no broker
oracle.py    DumpLogSegments over many files in one JVM; dump_text.py parses what it prints
"""
