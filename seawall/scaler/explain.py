"""What the scaler said of an object, and by which samples: from the shared topic, without asking the scaler.

Reads only. An object that stands there under several options, from before and after a change, is its newest.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import closing

from seawall import connections
from seawall.scaler.errors import ObjectUnknown, ScalerTopicUnusable
from seawall.settings import Settings
from workers.scaler.chain import Link
from workers.scaler.shared.kafka import KafkaLog

READ_DEADLINE_S = 30.0
NAMES_MAX = 20


def links_of(settings: Settings, name: str) -> list[Link]:
    """The chain of an object, `namespace/name`, oldest first. Raises ObjectUnknown, ScalerTopicUnusable."""
    topic = settings.scaler.topic
    chains: dict[str, list[Link]] = defaultdict(list)
    last_moment = time.monotonic() + READ_DEADLINE_S
    with closing(
        KafkaLog(connections.kafka_config(settings, client_id="seawall-scaler-explain"), topic=topic)
    ) as log:
        while not log.is_caught_up():
            if time.monotonic() >= last_moment:
                why = f"its end was not reached within {READ_DEADLINE_S:g} s"
                raise ScalerTopicUnusable(topic=topic, what="read", why=why)
            for each in log.read(0.5):
                links = chains[each.link.object_key]
                if not links or each.link.place > links[-1].place:
                    links.append(each.link)
    mine = [links for key, links in chains.items() if name in (key, key.rpartition("/")[0])]
    if not mine:
        known = sorted({key.rpartition("/")[0] for key in chains})
        shown = ", ".join(known[:NAMES_MAX]) + (", ..." if len(known) > NAMES_MAX else "")
        raise ObjectUnknown(name=name, topic=topic, known=shown or "nothing")
    return max(mine, key=lambda links: links[-1].sample.at_s)
