"""`seawall top`: the fleet as its own metrics tell it, live in a terminal.

    scrape   one look at one place: an address that answers /metrics, or a file in the same format
    fleet    what several looks come to: who answers, what waits, what is wrong. Values only
    screen   that, drawn by textual until somebody leaves

Reads what everybody may scrape, and nothing else: no broker, no bucket, no credentials.
"""
