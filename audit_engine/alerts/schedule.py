"""What an answer means, and when to try again.

    2xx                   it has it
    410                   nobody is there any more: the endpoint is used no more until a test reaches it
    408, 425, 429, 5xx    again later; with Retry-After not before that
    3xx                   again later: we go to no other place than the one that was set
    other 4xx             final: it will not take this message, ever
    no answer             again later: it may have arrived, which is why the id stays the same

The times are those that Standard Webhooks recommends, three days in all, each longer or shorter by up to a
fifth, by chance, so that many senders do not come back at once.

Owns these rules. Time and chance are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum

from audit_engine.alerts.transport import Answer, NoAnswer

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DELAYS_MS = (
    *(5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS),
    *(2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 14 * HOUR_MS, 20 * HOUR_MS, 24 * HOUR_MS),
)
ATTEMPTS_MAX = len(DELAYS_MS) + 1
JITTER = 0.2
RETRY_AFTER_MAX_MS = 24 * HOUR_MS
PAUSE_MAX_MS = 30 * HOUR_MS  # longer than any of ours: what is to wait longer was written by a wrong clock
_PASSING = frozenset({408, 425, 429})
_BUSY = frozenset({429, 503})


class Outcome(str, Enum):
    DELIVERED = "delivered"
    LATER = "later"
    REFUSED = "refused"  # final: the receiver will not have it
    GIVEN_UP = "given up"  # final: it was tried often enough
    GONE = "gone"  # the endpoint is disabled; the message waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`at_ms`: when to try again. `is_of_endpoint`: other messages fare no better until then."""

    outcome: Outcome
    why: str
    at_ms: int | None = None
    is_of_endpoint: bool = False


def judged(answer: Answer | NoAnswer, *, attempt: int, now_ms: int, chance: float) -> Verdict:
    """`attempt` counts from 1; `chance` is from [0, 1)."""
    if isinstance(answer, NoAnswer):
        return _later(answer.why, None, attempt, now_ms, chance, is_of_endpoint=True)
    status, why = answer.status, f"{answer.status} {answer.body}".strip()
    if 200 <= status < 300:
        return Verdict(outcome=Outcome.DELIVERED, why=str(status))
    if status == 410:
        return Verdict(outcome=Outcome.GONE, why=why, is_of_endpoint=True)
    if 400 <= status < 500 and status not in _PASSING:
        return Verdict(outcome=Outcome.REFUSED, why=why)
    asked_ms = retry_after_ms(answer.retry_after, now_ms)
    is_redirect = 300 <= status < 400
    is_of_endpoint = status in _BUSY or is_redirect or asked_ms is not None
    if is_redirect:
        why = f"{status}: it points elsewhere, where nothing is sent"
    return _later(why, asked_ms, attempt, now_ms, chance, is_of_endpoint=is_of_endpoint)


def _later(
    why: str, asked_ms: int | None, attempt: int, now_ms: int, chance: float, *, is_of_endpoint: bool
) -> Verdict:
    if attempt >= ATTEMPTS_MAX:
        return Verdict(outcome=Outcome.GIVEN_UP, why=why, is_of_endpoint=is_of_endpoint)
    at_ms = now_ms + max(delay_ms(attempt, chance), asked_ms or 0)
    return Verdict(outcome=Outcome.LATER, why=why, at_ms=at_ms, is_of_endpoint=is_of_endpoint)


def delay_ms(attempt: int, chance: float) -> int:
    """How long to wait after this attempt."""
    return round(DELAYS_MS[min(attempt, len(DELAYS_MS)) - 1] * (1 + JITTER * (2 * chance - 1)))


def retry_after_ms(text: str | None, now_ms: int) -> int | None:
    """How long a receiver asks for, by seconds or by a date; None where it does not, or not in earnest."""
    if text is None:
        return None
    if text.strip().isdecimal():
        asked_ms = int(text[:12]) * SECOND_MS
    else:
        try:
            asked_ms = int(parsedate_to_datetime(text).timestamp() * SECOND_MS) - now_ms
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0, min(asked_ms, RETRY_AFTER_MAX_MS))
