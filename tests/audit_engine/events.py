"""Events for tests: any that may be said, derived from their dataclasses, and a simple one of each kind."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from audit_engine.wire import Emitter, Envelope, Follows
from rules.events import KINDS, Event, Heartbeat, TierState, TrimCertified, UploadStalled
from rules.identity import LogId

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
LOG = LogId(CLUSTER_ID, "CgkTzsXgRlOwPTRJHnL2yg", 3)
OTHER_LOG = LogId(CLUSTER_ID, "3cVtEW_RTm2TSqxDBnRsEA", 0)

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)


def _event(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Every field by its type; the common ones within what the envelope allows."""
    bounded: dict[str, Any] = {
        "occurred_at_ms": COUNTS,
        "leader_epoch": st.integers(-1, 2**31 - 1),
        "log": st.builds(LogId, cluster_id=st.text(), topic_id=st.text(), partition=PARTITIONS),
        "partition": st.none() | PARTITIONS,
    }
    hints = get_type_hints(kind)
    names = {each.name for each in fields(kind)}
    own, bounded = names - bounded.keys(), {name: bounded[name] for name in bounded.keys() & names}
    return st.builds(kind, **bounded, **{name: _any(hints[name]) for name in own})


def _any(hint: Any) -> st.SearchStrategy[Any]:
    arguments = get_args(hint)
    if hint is int:
        return INT64
    if type(None) in arguments:
        return st.none() | _any(next(each for each in arguments if each is not type(None)))
    if get_origin(hint) is tuple and arguments[-1] is Ellipsis:
        return st.lists(_any(arguments[0]), max_size=3).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(_any, arguments))
    if hasattr(hint, "_fields"):
        return st.tuples(*map(_any, get_type_hints(hint).values())).map(lambda found: hint(*found))
    return st.from_type(hint)


EVENTS: dict[str, st.SearchStrategy[Event]] = {kind.kind: _event(kind) for kind in KINDS}
EMITTERS = st.builds(Emitter, PARTITIONS, st.text(), COUNTS)


def envelopes(kind: str) -> st.SearchStrategy[Envelope]:
    return st.one_of(_envelopes(kind, is_first=False), _envelopes(kind, is_first=True))


def _envelopes(kind: str, *, is_first: bool) -> st.SearchStrategy[Envelope]:
    return st.builds(
        Envelope,
        event=EVENTS[kind],
        emitter=EMITTERS,
        emitter_seq=COUNTS,
        log_seq=st.none() | COUNTS,
        observed_at_ms=COUNTS,
        is_first=st.just(is_first),
        follows=st.none() | st.builds(Follows, COUNTS, COUNTS) if is_first else st.none(),
        replica=st.none() | st.text(),
        role=st.none() | st.text(),
        unrecognised=st.just({}),
    )


def stalled(number: int, log: LogId = LOG, *, reason: str = "nothing", at_ms: int = 1_000) -> UploadStalled:
    """An event that nothing hangs on, told apart by its number."""
    return UploadStalled(
        event_id=f"event-{number}",
        occurred_at_ms=at_ms,
        log=log,
        topic="orders",
        leader_epoch=5,
        frontier=number,
        stalled_ms=1,
        waiting_segments=2,
        waiting_bytes=3,
        reason=reason,
    )


def heartbeat(number: int) -> Heartbeat:
    """An event about no log."""
    return Heartbeat(
        event_id=f"heartbeat-{number}",
        occurred_at_ms=1_000,
        cluster_id=CLUSTER_ID,
        last_seq=number,
        log_count=0,
        log_seqs_digest="ab" * 32,
        lost_count=0,
        metadata_offset=None,
    )


def certificate(number: int, log: LogId = LOG) -> TrimCertified:
    return TrimCertified(
        event_id=f"certificate-{number}",
        occurred_at_ms=1_000,
        log=log,
        topic="orders",
        leader_epoch=5,
        certificate_id=f"c{number}",
        old_start=0,
        new_start=number,
        frontier=number,
        metadata_partition=0,
        metadata_offset=7,
        digest="ab" * 32,
        agreeing_brokers=(1, 2),
        segments=(("s1", "x"),),
    )


def tier_state(offset: int, digest: str, log: LogId = LOG, *, metadata_partition: int = 4) -> TierState:
    return TierState(
        event_id=f"state-{offset}-{digest}",
        occurred_at_ms=1_000,
        log=log,
        topic="orders",
        leader_epoch=5,
        metadata_partition=metadata_partition,
        metadata_offset=offset,
        digest=digest,
        tiered_start=0,
        frontier=10,
        segment_count=1,
        size_bytes=100,
    )
