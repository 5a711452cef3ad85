"""Secrets that were planted in the settings are in nothing that a verb prints, on any way out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seawall.local.bucket import LocalBucket
from seawall.settings import load
from seawall.spark import S3Access
from tests.seawall.cli.calling import call

PLANTED = {
    "sasl": "planted-sasl-password",
    "key": "planted-key-password",
    "s3": "planted-s3-secret",
    "signing": "whsec_cGxhbnRlZC1zaWduaW5nLXNlY3JldC1vZi10aGUtd2ViaG9vaw==",
    "address": "planted-webhook-path",
    "token": "planted-routing-key",
}
NOBODY = "127.0.0.1:1"
ENDPOINTS: list[dict[str, Any]] = [
    {
        "name": "ops",
        "format": "native",
        "url": f"https://{NOBODY}/hook",
        "secrets": ["env:OPS_SIGNING"],
        "allow_private": True,
        "timeout_s": 1,
    },
    {"name": "chat", "format": "slack", "url": "env:CHAT_URL", "allow_private": True, "timeout_s": 1},
    {"name": "pager", "format": "pagerduty", "url": f"https://{NOBODY}/", "routing_key": "env:PAGER_KEY"},
]


@pytest.fixture
def environ(bucket: LocalBucket, tmp_path: Path) -> dict[str, str]:
    """Every secret that there is a place for; a bucket that answers, and a cluster that does not."""
    at = bucket.address
    return {
        "SEAWALL_KAFKA__BOOTSTRAP": NOBODY,
        "SEAWALL_KAFKA__CLIENT__SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SEAWALL_KAFKA__CLIENT__SASL_MECHANISM": "PLAIN",
        "SEAWALL_KAFKA__CLIENT__SASL_USERNAME": "somebody",
        "SEAWALL_KAFKA__CLIENT__SASL_PASSWORD": PLANTED["sasl"],
        "SEAWALL_KAFKA__CLIENT__SSL_KEY_PASSWORD": PLANTED["key"],
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__REGION": at.region,
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_ALERTS__ENDPOINTS": json.dumps(ENDPOINTS),
        "SEAWALL_ALERTS__STATE_DIR": str(tmp_path / "alerts"),
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": PLANTED["s3"],
        "OPS_SIGNING": PLANTED["signing"],
        "CHAT_URL": f"https://{NOBODY}/{PLANTED['address']}",
        "PAGER_KEY": PLANTED["token"],
    }


def _unsaid(*texts: str) -> None:
    for text in texts:
        assert [name for name, secret in PLANTED.items() if secret in text] == []


@pytest.mark.parametrize(
    "words",
    [
        ("settings",),
        ("settings", "--json"),
        ("doctor",),
        ("doctor", "--json"),
        ("policy", "show"),
        ("alerts", "list", "--json"),
        ("alerts", "test"),
        ("audit", "status"),
    ],
    ids=" ".join,
)
def test_no_verb_says_a_secret(
    words: tuple[str, ...],
    environ: dict[str, str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Standard output, errors, and what a client library writes by itself; with and without --json."""
    for place in ("seawall.connections", "seawall.policy.kafka", "seawall.doctor.kafka"):
        monkeypatch.setattr(f"{place}.ANSWER_TIMEOUT_S", 1.0)  # there is nobody to wait for
    called = call(*words, environ=environ)

    _unsaid(called.stdout, called.stderr, *capfd.readouterr())
    assert called.stdout or called.stderr
    assert called.status != 70, called.stderr


def test_no_value_shows_what_it_hides(environ: dict[str, str]) -> None:
    """The settings and what is made of them, as a debugger or a traceback would print them."""
    loaded = load(environ={name: value for name, value in environ.items() if name.startswith("SEAWALL_")})

    _unsaid(repr(loaded), str(loaded.settings), repr(loaded.settings.kafka), repr(loaded.settings.alerts))
    _unsaid(repr(S3Access(access_key_id="a", secret_access_key=PLANTED["s3"])))
    assert loaded.settings.kafka.librdkafka()["sasl.password"] == PLANTED["sasl"]


@pytest.mark.parametrize(
    "changed",
    [
        {"SEAWALL_KAFKA__BOOTSTRAP": f"somebody:{PLANTED['sasl']}@host"},
        {"SEAWALL_S3__ENDPOINT_URL": f"https://key:{PLANTED['s3']}@host"},
        {
            "SEAWALL_ALERTS__ENDPOINTS": json.dumps(
                [{**ENDPOINTS[1], "url": f"http://x/{PLANTED['address']}"}]
            )
        },
        {"SEAWALL_ALERTS__ENDPOINTS": json.dumps([{**ENDPOINTS[2], "routing_key": PLANTED["token"]}])},
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_unsaid(
    changed: dict[str, str], environ: dict[str, str]
) -> None:
    """Where it does not belong it is refused, with its place and without it."""
    called = call("settings", environ={**environ, **changed})

    assert called.status == 11
    assert next(iter(changed)) in called.stderr
    _unsaid(called.stdout, called.stderr)
