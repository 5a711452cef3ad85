"""A message that says of itself that it is a test, in the shape of any other.

Owns its words. Its finding is of no rule and about no log.
"""

from __future__ import annotations

import uuid

from audit_engine.alerts.message import Message, State, Stood


def trial(now_ms: int, *, has_end: bool) -> list[Message]:
    """One message; with `has_end` a second that says that it is over."""
    name = f"test-{uuid.uuid4().hex}"
    states = [State.TEST, State.ENDED] if has_end else [State.TEST]
    return [_message(name, now_ms, state) for state in states]


def _message(name: str, now_ms: int, state: State) -> Message:
    is_open = state is State.TEST
    finding = {
        "finding_id": name,
        "rule_id": "TEST",
        "severity": "W",
        "subject": "test",
        "anchor": "",
        "ranges": [],
        "status": "open" if is_open else "resolved",
        "opened_ms": now_ms,
        "ended_ms": None if is_open else now_ms,
        "note": "a test of Seawall's alerts: nothing is wrong",
        "incident": name,
        "parent": None,
        "recoverable_offsets": 0,
        "lost_offsets": 0,
        "held_by": [],
        "suppressed_by": None,
    }
    stood = Stood(finding=finding, change="test", is_open=is_open, is_news=True, severities=("W",))
    return Message(
        id=f"msg_{uuid.uuid4().hex}",
        thread=name,
        run=0,
        as_of_ms=now_ms,
        state=state,
        severity="W",
        peak="W",
        title="a test of Seawall's alerts: nothing is wrong",
        finding_count=1,
        open_count=int(is_open),
        stood=(stood,),
    )
