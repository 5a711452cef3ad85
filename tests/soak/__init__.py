"""A steady load for as long as one likes, and whether anything grows that should not.

measured.py   what a process holds, and what growth is: pure, but for /proc
world.py      three brokers, an agent beside each, serve, ingest, a load and a reader
soak.py       one soak: samples, scrubs and audits while the load goes on; what was seen
__main__.py   python -m tests.soak --minutes 60
"""
