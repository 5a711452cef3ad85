"""Signatures: the specification's vector, and a receiver that knows nothing of us but its secret."""

from __future__ import annotations

import base64
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_engine.alerts.signing import secret_of, signed
from tests.audit_engine.alerts.news import Clock, Runs, deliverer, endpoint, opened, run
from tests.audit_engine.alerts.receiver import Came, receiver

standardwebhooks = pytest.importorskip("standardwebhooks", reason="the dev dependency is not installed")

OLD, NEW, OTHER = (f"whsec_{base64.b64encode(bytes([each]) * 32).decode()}" for each in (1, 2, 3))


def test_the_published_vector() -> None:
    """What the specification's own libraries are tested with."""
    headers = signed(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        [secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")],
    )

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_AAAA", "not base64 at all", "whsec_" + "A" * 200])
def test_a_secret_that_is_none_is_refused_without_being_shown(text: str) -> None:
    """Too short, too long, or no base64."""
    with pytest.raises(ValueError, match="random bytes") as refused:
        secret_of(text)

    assert len(text) < 8 or text not in str(refused.value)


def delivered(folder: Path, *secrets: str, now_s: float | None = None) -> Came:
    """One message, as it came over the network."""
    clock = Clock(int((now_s or time.time()) * 1000))
    with receiver() as receiving:
        target = endpoint(receiving.url, signing=tuple(map(secret_of, secrets)))
        ours = deliverer(folder, target, clock=clock)
        ours.take_in(Runs(run(1, opened("ä", note="Umlaut: ü, 漢字, \u2028"))))
        ours.deliver()
    [came] = receiving.taken
    return came


def test_the_public_package_verifies_ours(tmp_path: Path) -> None:
    """Whoever uses it needs no code of ours."""
    came = delivered(tmp_path, NEW)

    told = standardwebhooks.Webhook(NEW).verify(came.body, came.headers)

    assert told["type"] == "incident.opened"
    assert came.headers["webhook-id"] == came.id


def test_while_a_secret_is_replaced_both_verify(tmp_path: Path) -> None:
    """The receiver may have the new one or still the old one; of others none is let in."""
    came = delivered(tmp_path, NEW, OLD)

    for secret in (OLD, NEW):
        standardwebhooks.Webhook(secret).verify(came.body, came.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(OTHER).verify(came.body, came.headers)


def test_altered_and_replayed_ones_are_rejected(tmp_path: Path) -> None:
    """A byte of the body, another id, another time; and the whole of it six minutes later."""
    came = delivered(tmp_path / "now", NEW)
    old = delivered(tmp_path / "old", NEW, now_s=time.time() - 360)
    hook = standardwebhooks.Webhook(NEW)
    altered = [
        (came.body.replace(b"critical", b"warning "), came.headers),
        (came.body, {**came.headers, "webhook-id": "msg_other"}),
        (came.body, {**came.headers, "webhook-timestamp": str(int(came.headers["webhook-timestamp"]) - 1)}),
        (came.body, {name: each for name, each in came.headers.items() if name != "webhook-signature"}),
        (old.body, old.headers),
        (old.body, {**old.headers, "webhook-timestamp": came.headers["webhook-timestamp"]}),
    ]

    for body, headers in altered:
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            hook.verify(body, headers)


@given(st.binary(max_size=200), st.binary(min_size=24, max_size=64), st.integers(0, 2**40))
def test_signatures_are_those_of_the_package(body: bytes, key: bytes, timestamp_s: int) -> None:
    """For any secret and time, over any text."""
    text = body.hex()
    spelled = f"whsec_{base64.b64encode(key).decode()}"
    at = _moment(timestamp_s % 4_000_000_000)

    ours = signed("msg_1", timestamp_s % 4_000_000_000, text.encode(), [secret_of(spelled)])

    assert ours["webhook-signature"] == standardwebhooks.Webhook(spelled).sign("msg_1", at, text)


def _moment(timestamp_s: int) -> datetime:
    return datetime.fromtimestamp(timestamp_s, tz=timezone.utc)
