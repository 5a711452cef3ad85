"""Where alerts go: one place, in one format, with what it takes to be let in.

Owns the value. Secrets in it are never part of its `repr`, and `place` is all of its address that is shown:
of a Slack webhook the path is the secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
HOUR_MS = 3_600_000


class Format(str, Enum):
    NATIVE = "native"
    ALERTMANAGER_WEBHOOK = "alertmanager-webhook"  # what an Alertmanager would send to its own receivers
    PAGERDUTY = "pagerduty"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"  # an Alertmanager itself, by its API v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """`severity`: only threads that were ever this grave, W, E or C. `keeps_firing_ms`: past the next run."""

    name: str
    format: Format
    url: str = field(repr=False)
    severity: str = "W"
    signing: tuple[bytes, ...] = field(default=(), repr=False)
    routing_key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    is_private_allowed: bool = False
    ca_file: str | None = None
    timeout_s: float = 15.0
    keeps_firing_ms: int = 26 * HOUR_MS
    findings_max: int = 20

    @property
    def place(self) -> str:
        """Scheme, host and port."""
        url = urlsplit(self.url)
        port = f":{url.port}" if url.port else ""
        host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
        return f"{url.scheme}://{host}{port}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, should somebody say it back to us."""
        url = urlsplit(self.url)
        told = (self.routing_key, self.token, url.path.strip("/"), url.query)
        return tuple(each for each in told if len(each) >= 8)
