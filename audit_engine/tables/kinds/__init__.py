"""Each kind's own fields as typed columns: what `audit_events` has as `body`, for people and their SQL.

    SELECT <place and envelope>, own.*
    FROM (SELECT *, from_json(body, '<own fields>') AS own
          FROM audit_events WHERE kind = '<kind>' AND is_read)

Owns the text of these views, derived from the event definitions. Refuses to be a second truth: nothing is
stored, and the judge reads `body` itself.

Invariant: each field of the kind is a column, of the type that `audit_engine.tables.columns` says, and reads
back as it was written.
"""

from __future__ import annotations

from audit_engine.tables.columns import EVENT_COLUMNS, OWN_FIELDS

_INSTEAD = ("body", "is_read", "unrecognised")  # a view's rows are read, and its columns are the body


def view_of(kind: str, events: str) -> str:
    """A query over `events`, a table as SQL names it. KeyError if there is no such kind."""
    fields = OWN_FIELDS[kind]
    around = ", ".join(f"`{each.name}`" for each in EVENT_COLUMNS if each.name not in _INSTEAD)
    own = "".join(f", own.`{each.name}` AS `{each.column}`" for each in fields)
    schema = ", ".join(f"`{each.name}` {each.sql_type}" for each in fields)
    parsed = f", from_json(body, '{schema}') AS own" if fields else ""
    return f"SELECT {around}{own} FROM (SELECT *{parsed} FROM {events} WHERE kind = '{kind}' AND is_read)"
