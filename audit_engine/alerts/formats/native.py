"""Our own JSON, in the shape that Standard Webhooks recommends: type, timestamp, data; below 20 KB.

    {"type": "incident.opened", "timestamp": "2026-01-31T06:00:00.000Z", "data": {"incident": ...}}

Owns the names: docs/ALERTS.md lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.formats.words import fitted, moment, told
from audit_engine.alerts.message import Message, Stood
from rules.severities import SEVERITY_WORDS

BODY_BYTES_MAX = 20_000


def body(endpoint: Endpoint, message: Message) -> bytes:
    def made(shown: Sequence[Stood]) -> dict[str, Any]:
        return {
            "type": f"incident.{message.state.value}",
            "timestamp": moment(message.as_of_ms),
            "data": {
                "incident": message.thread,
                "run": message.run,
                "severity": SEVERITY_WORDS[message.severity],
                "severity_ever": SEVERITY_WORDS[message.peak],
                "summary": message.summary,
                "findings_total": message.finding_count,
                "findings_open": message.open_count,
                "findings_truncated": message.finding_count - len(shown),
                "findings": [told(each) for each in shown],
            },
        }

    return fitted(made, message.stood, most=endpoint.findings_max, size_bytes_max=BODY_BYTES_MAX)
