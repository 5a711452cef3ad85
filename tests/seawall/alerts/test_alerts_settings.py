"""[[alerts.endpoints]]: what is allowed, how secrets are named, and that none is ever shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from audit_engine.alerts.endpoints import Format
from audit_engine.alerts.errors import SecretMissing
from seawall.alerts.endpoints import endpoints_of
from seawall.settings import Settings, SettingsRefused, load

SECRET = f"whsec_{base64.b64encode(b's' * 32).decode()}"
SLACK = "https://hooks.slack.com/services/T000/B000/very-secret"


def loaded(**table: Any) -> Settings:
    """Of one endpoint, as JSON in a variable, which takes what the file takes."""
    members = {"name": "ops", "format": "native", "url": "https://h.example/x", "secrets": ["env:S"], **table}
    kept = {name: value for name, value in members.items() if value is not None}
    return load(environ={"SEAWALL_ALERTS__ENDPOINTS": json.dumps([kept])}).settings


def test_a_file_names_several(tmp_path: Path) -> None:
    """One table each; secrets come from a variable and a file."""
    (tmp_path / "key").write_text(f"{'k' * 32}\n")
    file = tmp_path / "seawall.toml"
    file.write_text(f"""
[alerts]
state_dir = "{tmp_path}"
[[alerts.endpoints]]
name = "ops"
format = "native"
url = "https://h.example/x"
secrets = ["env:NEW", "env:OLD"]
severity = "error"
[[alerts.endpoints]]
name = "pager"
format = "pagerduty"
routing_key = "file:{tmp_path}/key"
[[alerts.endpoints]]
name = "am"
format = "alertmanager"
url = "http://alertmanager:9093"
allow_private = true
keeps_firing_hours = 50
""")
    settings = load(file=file, environ={}).settings

    ops, pager, real = endpoints_of(settings, {"NEW": SECRET, "OLD": SECRET})

    assert (ops.severity, ops.signing) == ("E", (b"s" * 32, b"s" * 32))
    assert (pager.format, pager.routing_key, pager.place) == (
        Format.PAGERDUTY,
        "k" * 32,
        "https://events.pagerduty.com",
    )
    assert (real.is_private_allowed, real.keeps_firing_ms) == (True, 50 * 3_600_000)


@pytest.mark.parametrize(
    ("table", "allowed"),
    [
        ({"name": "Ops!"}, "a `name` of a-z"),
        ({"format": "email"}, "one of native"),
        ({"url": "http://h.example/x"}, "http:// is for private addresses"),
        ({"url": "https://user:hunter2@h.example/"}, "without user or password"),
        ({"url": "ftp://h.example/"}, "https://"),
        ({"url": "https://h.example:99999/"}, "https://"),
        ({"url": "https://h.example/a b"}, "https://"),
        ({"url": None}, "an address"),
        ({"secrets": [SECRET]}, "env:NAME"),
        ({"secrets": None}, "there, so that the receiver can tell"),
        ({"secrets": ["env:SEAWALL_SECRET"]}, "env:NAME"),
        ({"secrets": ["env:S"] * 6}, "at most 5"),
        ({"token": "hunter2"}, "env:NAME"),
        ({"format": "pagerduty", "url": None}, "`routing_key` of endpoint 'ops' must be there"),
        ({"format": "slack", "url": SLACK}, "a Slack webhook's address is a secret"),
        ({"severity": "C"}, "one of warning"),
        ({"timeout_s": 0}, "a whole number from 1 to 60"),
        ({"findings_max": True}, "a whole number"),
        ({"allow_private": "yes"}, "true or false"),
        ({"ca_file": 5}, "the path"),
        ({"retries": 5}, "left out: it is not known"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(table: dict[str, Any], allowed: str) -> None:
    """By the endpoint's name and the key, and no value is shown: it may be a secret in the wrong place."""
    with pytest.raises(SettingsRefused) as refused:
        loaded(**table)

    assert allowed in str(refused.value)
    for secret in ("hunter2", "very-secret", SECRET):
        assert secret not in str(refused.value)


@pytest.mark.parametrize("text", ["ops", "{}", "[5]", '[{"name": 1}]', "5"])
def test_what_is_no_list_of_tables_is_refused(text: str) -> None:
    """In a variable it is JSON."""
    with pytest.raises(SettingsRefused, match="a list of tables"):
        load(environ={"SEAWALL_ALERTS__ENDPOINTS": text})


def test_two_of_one_name_are_refused() -> None:
    """Their records would be one."""
    one = {"name": "a", "format": "slack", "url": "env:S"}

    with pytest.raises(SettingsRefused, match="of its own"):
        load(environ={"SEAWALL_ALERTS__ENDPOINTS": json.dumps([one, one])})


def test_what_is_shown_names_them(tmp_path: Path) -> None:
    """`seawall settings` prints names and formats."""
    file = tmp_path / "s.toml"
    file.write_text('[[alerts.endpoints]]\nname = "chat"\nformat = "slack"\nurl = "env:CHAT"\n')

    assert dict(load(file=file, environ={}).items())["alerts.endpoints"] == "chat (slack)"


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "there is nothing"),
        ({"S": "  "}, "there is nothing"),
        ({"S": "hunter2"}, "24 to 64 random bytes"),
        ({"S": "two\nlines"}, "more than one line"),
    ],
)
def test_a_secret_that_is_not_there_is_said_by_its_name(environ: dict[str, str], why: str) -> None:
    """Never by what was found."""
    with pytest.raises(SecretMissing, match="env:S") as missing:
        endpoints_of(loaded(), environ)

    assert why in str(missing.value)
    assert "hunter2" not in str(missing.value)


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path: Path) -> None:
    """With the system's own word."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, why in (("none", "No such file"), ("binary", "no plain text")):
        with pytest.raises(SecretMissing, match=why):
            endpoints_of(loaded(secrets=[f"file:{tmp_path}/{name}"]), {})


def test_an_address_from_a_variable_is_held_to_the_same_rules() -> None:
    """A reference is no way around them."""
    settings = loaded(format="slack", url="env:CHAT", secrets=None)

    [chat] = endpoints_of(settings, {"CHAT": SLACK})
    assert (chat.url, chat.place) == (SLACK, "https://hooks.slack.com")
    with pytest.raises(SecretMissing, match="https://"):
        endpoints_of(settings, {"CHAT": "http://127.0.0.1/very-secret"})
