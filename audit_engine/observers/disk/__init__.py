"""The log dirs of this host, look by look: what happened to each replica's files, as events.

    differ      observe: from what was seen and what is there now to events; files only through its port
    segments    what became of one directory's segments
    seen        what is remembered between two looks
    say         findings about one replica as events, numbered within its life
    reads       the few bytes that a listing does not tell
    memory      what is remembered, on disk, with the events that are not out yet
    observer    Observer: survey, compare, keep, emit

Owns what a file system shows of a broker. Refuses to infer a reason, and to write into a log dir.
"""
