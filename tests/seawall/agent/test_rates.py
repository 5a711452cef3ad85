"""A topic's own rate: its uploads keep to it, and nobody else's wait for them."""

from __future__ import annotations

from contextlib import ExitStack

from rules.policy.quantities import UNLIMITED, Limit
from seawall.agent.rates import Uploaders
from tests.tiering.store.memory import MemoryStore
from tiering.store.content import PIECE_BYTES
from tiering.store.patient import patient


def test_each_topic_keeps_to_its_own_rate() -> None:
    """A slow topic's bytes wait, by what its rate asks for; a topic without a rate does not; and a rate that
    is declared anew holds from the next segment on."""
    rates: dict[str, Limit] = {"slow": PIECE_BYTES, "fast": UNLIMITED}
    slept: list[float] = []
    store = patient(MemoryStore(), sleep=slept.append)
    content = bytes(4 * PIECE_BYTES)
    with ExitStack() as stack:
        uploaders = Uploaders(store, lambda topic: rates[topic], sleep=slept.append, stack=stack)
        uploaders.of("fast").upload_bytes("a", content)
        unhindered = list(slept)
        slow = uploaders.of("slow")
        slow.upload_bytes("b", content)
        waited_s = sum(slept)
        again = uploaders.of("slow")
        rates["slow"] = 100 * PIECE_BYTES
        anew = uploaders.of("slow")

    assert unhindered == []
    assert waited_s > 2.5, "four pieces, one of them at once, at one a second"
    assert again is slow
    assert anew is not slow
