"""A steady load for as long as one likes, and whether anything grows that should not.

bounds.py     what is asked for, and by how much anything may rise or lag
measured.py   what a process holds, and what growth is: pure, but for /proc
world.py      three brokers, an agent beside each, serve, ingest
traffic.py    a load to a topic that is kept and one that expires, readers that follow and that come anew
looking.py    one sample
seen.py       what was seen, and what was wrong with it
soak.py       one soak: samples, scrubs, cold reads and audits while the load goes on
shown.py      how it stands, and how it went, to be looked at
__main__.py   python -m tests.soak --minutes 60
"""
