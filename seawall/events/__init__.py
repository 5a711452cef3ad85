"""Events shown to people: which kinds there are, what each says, an example of each, and what is said now.

    described   a kind as its class has it: fields, types, words
    examples    one event of every kind, always the same
    page        docs/EVENTS.md                  python -m seawall.events.page > docs/EVENTS.md
    vectors     tests/vectors/events, a file a kind    python -m seawall.events.vectors tests/vectors/events
    lines       an event as one line
    kafka       reads `__seawall_audit`

Owns no kind and no field: all is derived from rules.events. Refuses to judge.
"""
