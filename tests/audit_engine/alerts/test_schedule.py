"""What an answer means, and when it is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_engine.alerts.schedule import (
    ATTEMPTS_MAX,
    DELAYS_MS,
    JITTER,
    RETRY_AFTER_MAX_MS,
    Outcome,
    delay_ms,
    judged,
    retry_after_ms,
)
from audit_engine.alerts.transport import Answer, NoAnswer
from tests.audit_engine.alerts.news import T0_MS


def answered(status: int, retry_after: str | None = None) -> Answer:
    return Answer(status=status, retry_after=retry_after, body="")


@pytest.mark.parametrize(
    ("statuses", "outcome", "is_of_endpoint"),
    [
        ((200, 202, 204, 299), Outcome.DELIVERED, False),
        ((400, 401, 403, 404, 409, 422, 451), Outcome.REFUSED, False),
        ((410,), Outcome.GONE, True),
        ((408, 425, 500, 502, 504, 599), Outcome.LATER, False),
        ((301, 302, 307, 308, 429, 503), Outcome.LATER, True),
    ],
)
def test_each_status_has_its_meaning(
    statuses: tuple[int, ...], outcome: Outcome, is_of_endpoint: bool
) -> None:
    """Final, again, or the endpoint's; the tenth attempt is the last."""
    for status in statuses:
        verdict = judged(answered(status), attempt=1, now_ms=T0_MS, chance=0.5)
        assert (verdict.outcome, verdict.is_of_endpoint) == (outcome, is_of_endpoint), status
        last = judged(answered(status), attempt=ATTEMPTS_MAX, now_ms=T0_MS, chance=0.5)
        assert last.outcome is (Outcome.GIVEN_UP if outcome is Outcome.LATER else outcome), status


def test_no_answer_is_tried_again_and_keeps_others_back() -> None:
    """It would be no different for them."""
    verdict = judged(NoAnswer(why="cut"), attempt=1, now_ms=T0_MS, chance=0.5)

    assert (verdict.outcome, verdict.at_ms, verdict.is_of_endpoint) == (Outcome.LATER, T0_MS + 5000, True)


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_delays_grow_and_are_scattered(attempt: int, chance: float) -> None:
    """Each within a fifth of what it should be, never none."""
    wanted = DELAYS_MS[min(attempt, len(DELAYS_MS)) - 1]

    found = delay_ms(attempt, chance)

    assert wanted * (1 - JITTER) - 1 <= found <= wanted * (1 + JITTER) + 1
    assert delay_ms(1, 0.0) < delay_ms(1, 0.99)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("0", 0),
        ("120", 120_000),
        (" 7 ", 7_000),
        ("999999999999999999999", RETRY_AFTER_MAX_MS),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120_000),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", RETRY_AFTER_MAX_MS),
        *((each, None) for each in ("soon", "-5", "1.5", "", "Fri, 99 Jan 2027")),
    ],
)
def test_retry_after_is_read_in_both_forms(text: str | None, expected: int | None) -> None:
    """Seconds and dates, bounded by a day; what is neither is not there."""
    assert retry_after_ms(text, T0_MS) == expected


def test_retry_after_only_lengthens() -> None:
    """A receiver that asks for a second is not asked before our own time."""
    short = judged(answered(429, "1"), attempt=3, now_ms=T0_MS, chance=0.5)
    long = judged(answered(500, "7200"), attempt=1, now_ms=T0_MS, chance=0.5)

    assert short.at_ms == T0_MS + DELAYS_MS[2]
    assert (long.at_ms, long.is_of_endpoint) == (T0_MS + 7_200_000, True)
