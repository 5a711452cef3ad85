"""Which broker coordinates which group, as brokers last said: one memory for all clients.

The lookup and what follows it come over different connections, perhaps by way of different instances; what is
not known here is asked again.
"""

from __future__ import annotations

from collections import OrderedDict

from tiering.serve.counters import Counters
from tiering.serve.upstream import Address

GROUPS_MAX = 20_000


class Coordinators:
    """Which broker coordinates which group, as brokers last said."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._known: OrderedDict[str, Address] = OrderedDict()

    def of(self, group: str) -> Address | None:
        return self._known.get(group)

    def learn(self, group: str, address: Address) -> None:
        self._known[group] = address
        self._known.move_to_end(group)
        while len(self._known) > GROUPS_MAX:
            self._known.popitem(last=False)
            self._counters.count("forgotten")

    def forget(self, group: str) -> None:
        self._known.pop(group, None)
