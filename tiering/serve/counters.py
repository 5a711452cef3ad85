"""What the endpoint counts, for metrics and tests. Every limit has a counter of how often it was met."""

from __future__ import annotations

from collections import Counter as Counts
from threading import Lock

NAMES = (
    "connections",  # taken
    "connections_refused",  # over connections_max or connections_per_host_max
    "requests",
    "requests_malformed",  # the connection was ended, as Kafka does
    "requests_unknown",  # no such request, or version of it: the same
    "requests_too_large",
    "requests_slow",  # a frame that did not come to its end in time
    "requests_paced",  # over requests_per_s: answered later
    "request_waits",  # over requests_bytes_max: read later
    "clients_idle",
    "clients_slow",  # did not take their answer in answer_s, or nothing of it in stalled_s
    "writes_refused",
    "reads_denied",  # no READ on the topic, or group
    "sasl_failed",
    "tier_fetches",  # partitions answered from the store
    "tier_bytes",
    "tail_fetches",  # partitions answered by their leader
    "tail_bytes",
    "handovers",  # partitions that a client asked of the leader, and before of the store
    "seam_retries",  # the leader has the offset no more, and the table has it not yet
    "out_of_range",  # said only outside of [log start, log end)
    "reads_refused",  # over READS_MAX
    "reads_late",  # over ANSWER_S
    "reads_failed",
    "gaps_met",
    "damaged",
    "missing",
    "leaders_away",
    "forwarded",
    "defects",  # ours: the connection was ended, and the log has the traceback
    "budget_waits",  # over answers_bytes_max: answers that waited for others to be taken
    "answers_cut",  # fetches that asked for more than answer_bytes_max
    "answers_left",  # a leader's, for which the client did not come again in LEFT_S
    "turns_put_off",  # partitions over tiered_at_once: in one of the next answers
    "waits_cut",  # fetches that wanted a leader to wait for longer than tail_wait_ms_max
    "offsets_queued",  # partitions over AT_ONCE of one request for offsets: answered after the others
    "groups_put_off",  # over KEYS_MAX in one FindCoordinator: to be asked for again
    "cursors_dropped",  # over CURSORS_MAX: a consumer that goes on begins anew
    "ready_put_off",  # over READYING_MAX: an answer that was not made ready before it is asked for
    "upstreams_dropped",  # over UPSTREAMS_MAX: opened again when it is needed
    "forgotten",  # topics, marks, groups, permissions over TOPICS_MAX, KNOWN_MAX, GROUPS_MAX, KEPT_MAX
)


class Counters:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._counts: Counts[str] = Counts()
        self._lock = Lock()

    def count(self, name: str, by: int = 1) -> None:
        assert name in NAMES, name
        with self._lock:
            self._counts[name] += by

    def __getitem__(self, name: str) -> int:
        assert name in NAMES, name
        with self._lock:
            return self._counts[name]

    def all(self) -> dict[str, int]:
        with self._lock:
            return {name: self._counts[name] for name in NAMES}
