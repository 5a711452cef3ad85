"""Kafka's protocol as it is spoken here: layouts as tables, read and written by one interpreter.

forms     tables to bytes and back, in the older and the flexible form (KIP-482)
fetching, asking, session    the tables of requests and answers
apis      which request is which, in which versions, and what becomes of it
frames    headers and lengths
codes     Kafka's error codes, as far as they are said here
"""
