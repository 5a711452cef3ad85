"""The client of our own against a real broker that wants a token over TLS."""

from __future__ import annotations

from contextlib import closing

from tests.cluster.secure import SecureBroker
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum import QuorumMark
from tiering.cluster.quorum.client import QuorumClient


def test_it_asks_over_tls_with_a_token(secure_broker: SecureBroker) -> None:
    """What it hears is what SCRAM hears: the leader of the quorum and a watermark."""
    with closing(QuorumClient(secure_broker.by_token())) as client:
        found = client.mark()

    assert isinstance(found, QuorumMark), found
    assert found.leader_id == 1
    assert found.high_watermark > 0


def test_a_token_that_the_broker_does_not_take_is_told(secure_broker: SecureBroker) -> None:
    """Rightly signed, for somebody else: refused, with the broker's own words."""
    with closing(QuorumClient(secure_broker.by_token(scope="elsewhere"))) as client:
        found = client.mark()

    assert isinstance(found, Unknown)
    assert found.cause is Cause.REFUSED
    assert "credentials" in found.reason
