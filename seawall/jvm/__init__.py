"""Java and the jars that run on it: found, fetched once, checked against pinned hashes, then used offline.

`java` finds the executable, `classpath` answers with the jars of a named classpath, `ivy` is the only module
that goes to the network, `python -m seawall.jvm` is what set-up calls. Nothing here starts a server.
"""
