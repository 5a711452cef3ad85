"""The process beside a broker: what runs, when it stops, and what it says of itself.

Owns the joining of tiering's parts, the folder of its state, its loops and its HTTP endpoint. Decides nothing
about data: that is tiering's.

    host        which log dirs, and where the agent's own state is
    lock        one agent per state folder
    policy      which topics are tiered, by the policy in force
    parts       everything made and joined, from the settings
    agent       the loops, and their end
    health      alive, ready, and why not
    metrics     the same in numbers
    http        /healthz, /readyz, /metrics
    logs        lines of JSON, or of text on a terminal
"""
