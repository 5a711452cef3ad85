"""Before a package's driver begins: settings and secrets from arguments, and what spark-submit is told."""

from __future__ import annotations

import os
from pathlib import Path

import boto3
import pytest

from seawall.local.bucket import LocalBucket
from seawall.settings import load
from seawall.spark_package.entry import asked_for, main, prepare, settled
from seawall.spark_package.errors import EntryRefused, SecretUnreadable
from tests.terraform.tools import moto

PLANTED = "hunter2-planted"


@pytest.mark.parametrize(
    ("verb", "code", "told"),
    [
        (("audit", "run"), 1, 0),
        (("audit", "run"), 3, 0),
        (("audit", "run", "--json"), 4, 0),
        (("audit", "ingest"), 1, 0),
        (("audit", "ingest"), 4, 4),
        (("audit", "run"), 55, 55),
        (("audit", "status"), 4, 4),
        (("audit", "status"), 1, 0),
        (("audit", "maintain"), 1, 1),
        (("audit", "run"), 0, 0),
    ],
)
def test_findings_are_no_failed_job(
    verb: tuple[str, ...], code: int, told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a run found ends as 0 and with a line; `audit status` and every failure keep their codes."""
    assert settled(verb, code) == told
    assert (f"ended with {code}" in capsys.readouterr().err) == (code != told)


def test_settings_and_secrets_come_by_arguments(tmp_path: Path) -> None:
    """--set by a setting's own name, --secret by what it refers to; the rest is the verb."""
    (tmp_path / "password").write_text(f"{PLANTED}-file\n")
    asked = asked_for(
        [
            *("--set", "kafka.bootstrap=one:9092", "--set=kafka.client.security.protocol=SASL_SSL"),
            *("--secret", f"SEAWALL_KAFKA__CLIENT__SASL_PASSWORD=file:{tmp_path}/password"),
            *("--secret", "OPS_HOOK=aws:hooks#ops", "--secret", "OTHER=env:GIVEN"),
            *("audit", "run", "--json"),
        ]
    )
    environ = {"GIVEN": PLANTED}

    prepare(asked, environ, aws=lambda ident: f'{{"ops": "{ident}-value"}}')

    assert asked.verb == ("audit", "run", "--json")
    assert (environ["OPS_HOOK"], environ["OTHER"]) == ("hooks-value", PLANTED)
    of_seawall = {name: value for name, value in environ.items() if name.startswith("SEAWALL_")}
    kafka = load(environ=of_seawall).settings.kafka.librdkafka()
    assert kafka["bootstrap.servers"] == "one:9092"
    assert kafka["sasl.password"] == f"{PLANTED}-file"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--set", f"kafka.client.sasl.password={PLANTED}", "audit", "run"], "is a secret"),
        (["--secret", f"X={PLANTED}", "audit", "run"], "is no reference"),
        (["--set", "kafka.bootsrap=x:1", "audit", "run"], "there is no setting"),
        (["--sett", "x", "audit", "run"], "is not an option"),
        (["--set", "kafka.bootstrap=x:1"], "there is no verb"),
        (["--settings"], "needs a value"),
    ],
)
def test_what_entry_does_not_take_is_refused_without_its_value(arguments: list[str], why: str) -> None:
    """A secret that stands in the arguments is not said again."""
    with pytest.raises(EntryRefused, match=why) as refused:
        asked_for(arguments)

    assert PLANTED not in str(refused.value)


def test_a_secret_that_is_not_there_is_said_by_its_place() -> None:
    """A variable, a file and a member that do not exist."""
    for reference in ("env:NOT_THERE", "file:/not/there", "aws:one#two"):
        asked = asked_for(["--secret", f"X={reference}", "audit", "run"])
        with pytest.raises(SecretUnreadable, match="cannot be read"):
            prepare(asked, {}, aws=lambda _: PLANTED)


def test_settings_and_a_secret_out_of_aws(bucket: LocalBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of settings from S3 and a value from Secrets Manager, by boto3's own chain."""
    at = bucket.address
    with moto() as url:
        for name, value in {
            "AWS_ENDPOINT_URL_S3": at.endpoint_url,
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": url,
            "AWS_ACCESS_KEY_ID": at.access_key_id,
            "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
            "AWS_DEFAULT_REGION": at.region,
        }.items():
            monkeypatch.setenv(name, value)
        boto3.client("secretsmanager").create_secret(Name="ops", SecretString=PLANTED)
        bucket.client().put_object(
            Bucket=at.bucket, Key="conf/seawall.toml", Body=b'[kafka]\nbootstrap = "k:1"\n'
        )
        environ: dict[str, str] = {}

        place = f"s3://{at.bucket}/conf/seawall.toml"
        prepare(asked_for(["--settings", place, "--secret", "OPS=aws:ops", "audit", "run"]), environ)

        assert environ["OPS"] == PLANTED
        assert (
            load(environ={"SEAWALL_SETTINGS": environ["SEAWALL_SETTINGS"]}).settings.kafka.bootstrap == "k:1"
        )
        Path(environ["SEAWALL_SETTINGS"]).unlink()
        with pytest.raises(SecretUnreadable, match="nobody"):
            prepare(asked_for(["--secret", "OPS=aws:nobody", "audit", "run"]), environ)


def test_the_driver_runs_the_verb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`entry.py --set ... rules` is `seawall rules` with these settings, and its code is the driver's."""
    for name in [each for each in os.environ if each.startswith("SEAWALL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("sys.argv", ["entry.py"])

    assert main(["settings", "--help"]) == 0
    assert "Usage: seawall settings" in capsys.readouterr().out
    assert main(["audit", "nonsense"]) == 2
