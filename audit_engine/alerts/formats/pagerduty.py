"""PagerDuty's Events API v2: a thread is an incident there, triggered and resolved by its name.

What changes triggers again with the same `dedup_key`, which adds to the incident and pages nobody anew. After
a resolve, the same key opens another incident: a thread that began again.

Owns the mapping. Refuses, by leaving findings out, to be larger than PagerDuty takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.formats.words import fitted, moment, place, told
from audit_engine.alerts.message import Message, State, Stood
from rules.severities import SEVERITY_WORDS

BODY_BYTES_MAX = 500_000  # PagerDuty takes 512 KB


def body(endpoint: Endpoint, message: Message) -> bytes:
    event = {"routing_key": endpoint.routing_key, "dedup_key": message.thread}
    if message.state is State.ENDED:
        return json.dumps({**event, "event_action": "resolve"}).encode()
    root = message.stood[0].finding

    def made(shown: Sequence[Stood]) -> dict[str, Any]:
        return {
            **event,
            "event_action": "trigger",
            "client": "Seawall",
            "payload": {
                "summary": message.summary,
                "source": place(root)["cluster"],
                "severity": SEVERITY_WORDS[message.severity],
                "timestamp": moment(message.as_of_ms),
                "component": root["subject"],
                "group": message.thread,
                "class": root["rule_id"],
                "custom_details": {
                    "run": message.run,
                    "findings_open": message.open_count,
                    "findings_truncated": message.finding_count - len(shown),
                    "findings": [told(each) for each in shown],
                },
            },
        }

    return fitted(made, message.stood, most=endpoint.findings_max, size_bytes_max=BODY_BYTES_MAX)
