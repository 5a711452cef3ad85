"""The process beside a broker: what runs, when it stops, and what it says of itself.

Owns the joining of tiering's parts, the folder of its state, its loops and its HTTP endpoint. Decides nothing
about data: that is tiering's.

    agent       the parts, the loops, and their end
    host        which log dirs, and where the agent's own state is
    lock        one agent per state folder
    policy      which topics are tiered, by the policy in force
    leadership  who leads, for many threads
    table       the metadata topic: taken up, followed, written to
    evidence    events on disk and in `__seawall_audit`, and what other agents' tables say
    removing    expiry and trim;  watching  the early warning;  snapshots  the table on disk
    rates       the uploaders, each with its rate
    loops       work that is done every so often
    health      alive, ready, and why not;  metrics  the same in numbers;  http  both, for others
    sink, logs  events as lines of a log, JSON or text on a terminal
"""
