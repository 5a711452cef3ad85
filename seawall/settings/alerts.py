"""[[alerts.endpoints]]: where alerts go. What carries a secret is named, by variable or file, never written.

    [[alerts.endpoints]]
    name = "ops"
    format = "native"                         # alertmanager-webhook, pagerduty, slack, alertmanager
    url = "https://hooks.example.com/seawall"
    secrets = ["env:OPS_HOOK_SECRET"]         # or file:/run/secrets/ops-hook

Owns what is allowed, in words that fit after "must be". Reads no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from rules.severities import SEVERITY_LETTERS

FORMATS = ("native", "alertmanager-webhook", "pagerduty", "slack", "alertmanager")
SEVERITIES = dict(reversed(SEVERITY_LETTERS.items()))
ENDPOINTS_MAX = 50
SECRETS_MAX = 5

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
_LIST = "a list of tables, [[alerts.endpoints]] in the file; in a variable, the same as JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEndpoint:
    """As the file says it: `url` may be a reference, `secrets`, `routing_key` and `token` always are."""

    name: str
    format: str
    url: str
    severity: str = "warning"
    secrets: tuple[str, ...] = ()
    routing_key: str | None = None
    token: str | None = None
    allow_private: bool = False
    ca_file: str | None = None
    timeout_s: int = 15
    keeps_firing_hours: int = 26
    findings_max: int = 20

    def __str__(self) -> str:
        return f"{self.name} ({self.format})"


PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
_BOUNDS = {"timeout_s": (1, 60), "keeps_firing_hours": (1, 24 * 31), "findings_max": (1, 100)}
_KEYS = frozenset(AlertEndpoint.__slots__)


def read_endpoints(raw: Any) -> tuple[AlertEndpoint, ...]:
    """ValueError, which shows no value: any of them could be a secret in the wrong place."""
    tables = raw
    if isinstance(raw, str):
        try:
            tables = json.loads(raw)
        except ValueError:
            raise ValueError(_LIST) from None
    if not isinstance(tables, (list, tuple)) or len(tables) > ENDPOINTS_MAX:
        raise ValueError(_LIST)
    found = tuple(_endpoint(each) for each in tables)
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise ValueError("a list of tables, each with a `name` of its own")
    return found


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def url_trouble(url: str, *, allow_private: bool) -> str | None:
    """What is wrong with it, in words that follow "must be"; None if nothing is."""
    schemes = ("https", "http") if allow_private else ("https",)
    allowed = f"{' or '.join(f'{each}://' for each in schemes)} and a host, without user or password"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is none
    except ValueError:
        return allowed
    is_printable = re.fullmatch(r"[\x21-\x7e]+", url) is not None
    if parts.scheme not in schemes or not parts.hostname or "@" in parts.netloc or parts.fragment:
        hint = "" if allow_private else " (http:// is for private addresses: allow_private = true)"
        return allowed + hint
    return None if is_printable else allowed


def _endpoint(table: Any) -> AlertEndpoint:
    if not isinstance(table, Mapping):
        raise ValueError(_LIST)
    name = table.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ValueError("a list of tables, each with a `name` of a-z 0-9 _ - (at most 63)")

    def refuse(key: str, allowed: str) -> ValueError:
        return ValueError(f"otherwise: `{key}` of endpoint {name!r} must be {allowed}")

    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise refuse(unknown[0], f"left out: it is not known; there are {', '.join(sorted(_KEYS))}")
    given = {**table}
    if given.get("format") not in FORMATS:
        raise refuse("format", f"one of {', '.join(FORMATS)}")
    if given["format"] == "pagerduty":
        given.setdefault("url", PAGERDUTY_URL)
    if given.get("severity", "warning") not in SEVERITIES:
        raise refuse("severity", f"one of {', '.join(SEVERITIES)}")
    if not isinstance(given.get("allow_private", False), bool):
        raise refuse("allow_private", "true or false")
    for key, (least, most) in _BOUNDS.items():
        value = given.get(key, least)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise refuse(key, f"a whole number from {least} to {most}")
    _check_secrets(given, refuse)
    return AlertEndpoint(**{**given, "secrets": tuple(given.get("secrets", ()))})


def _check_secrets(given: Mapping[str, Any], refuse: Any) -> None:
    """Everything that is an address, or lets somebody in."""
    reference = "env:NAME of a variable or file:PATH, which has it"
    url, kind = given.get("url"), given["format"]
    if not isinstance(url, str):
        raise refuse("url", f"an address, or {reference}")
    if not is_reference(url):
        if kind == "slack":
            raise refuse("url", f"{reference}: a Slack webhook's address is a secret")
        trouble = url_trouble(url, allow_private=given.get("allow_private", False))
        if trouble is not None:
            raise refuse("url", f"{trouble}, or {reference}")
    secrets = given.get("secrets", ())
    if not isinstance(secrets, (list, tuple)) or len(secrets) > SECRETS_MAX or not all(map(_refers, secrets)):
        raise refuse("secrets", f"a list of at most {SECRETS_MAX}, each {reference}")
    for key in ("routing_key", "token"):
        if given.get(key) is not None and not _refers(given[key]):
            raise refuse(key, reference)
    if kind == "native" and not secrets:
        raise refuse("secrets", f"there, so that the receiver can tell whose it is: {reference}")
    if kind == "pagerduty" and given.get("routing_key") is None:
        raise refuse("routing_key", f"there: {reference}")
    if given.get("ca_file") is not None and not isinstance(given["ca_file"], str):
        raise refuse("ca_file", "the path of a file of certificates")


def _refers(value: Any) -> bool:
    """To something that is not a setting of ours: unknown SEAWALL_ variables are refused as misspelt ones."""
    return isinstance(value, str) and is_reference(value) and not value.upper().startswith("ENV:SEAWALL_")
