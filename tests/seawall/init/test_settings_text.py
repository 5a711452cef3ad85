"""The settings that are written: read back as they were, observing only, without a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from seawall.init.settings_text import settings_text
from seawall.settings import Settings, load
from tests.seawall.init.world import REFUSED, World

CLIENT = {"security.protocol": "SASL_SSL", "sasl.username": "seawall", "sasl.password": "tide-and-time"}


def written(world: World, **tables: Any) -> str:
    settings = Settings(**({"kafka": {"bootstrap": "kafka-1:9092"}} | tables))
    return settings_text(settings, world.seen(observe_s=0), where="cluster x")


def loaded(text: str, folder: Path, environ: dict[str, str] | None = None) -> Settings:
    file = folder / "seawall.toml"
    file.write_text(text)
    return load(file=file, environ=environ or {}).settings


def test_an_agent_with_these_settings_only_observes(tmp_path: Path) -> None:
    """The first thing that runs can touch neither bucket nor log, and knows the broker's own log dirs."""
    found = loaded(written(World()), tmp_path)

    assert found.agent.observe_only
    assert found.agent.log_dirs == ("/var/lib/kafka",)
    assert found.kafka.bootstrap == "kafka-1:9092"
    assert found.s3.bucket is None


def test_alerts_are_a_section_to_be_filled_in(tmp_path: Path) -> None:
    """Nobody is told before somebody says whom; with the comments taken off, the section is a right one."""
    text = written(World())
    assert loaded(text, tmp_path).alerts.endpoints == ()

    at = text.index("[alerts]")
    filled = "\n".join(line.removeprefix("# ") for line in text[at:].splitlines())
    found = loaded(text[:at] + filled, tmp_path).alerts

    assert found.state_dir == "/var/lib/seawall/alerts"
    assert [(each.name, each.format) for each in found.endpoints] == [("ops", "native")]


def test_how_the_cluster_was_reached_is_kept_but_never_its_secrets(tmp_path: Path) -> None:
    """librdkafka's properties stand in the file; the password is named with the variable that sets it."""
    text = written(World(), kafka={"bootstrap": "kafka-1:9092", "client": CLIENT})

    assert "tide-and-time" not in text
    variable = "SEAWALL_KAFKA__CLIENT__SASL_PASSWORD"
    assert variable in text
    found = loaded(text, tmp_path, {variable: "tide-and-time"}).kafka.client
    assert found["security.protocol"] == "SASL_SSL"
    assert isinstance(found["sasl.password"], SecretStr)
    assert found["sasl.password"].get_secret_value() == "tide-and-time"


def test_the_bucket_is_as_it_was_given(tmp_path: Path) -> None:
    """Bucket, prefix, region and address stand in the file."""
    s3 = {
        "bucket": "tides",
        "prefix": "deep",
        "region": "eu-central-1",
        "endpoint_url": "http://127.0.0.1:9000",
    }
    found = loaded(written(World(), s3=s3), tmp_path)

    assert found.s3.model_dump() == s3


def test_log_dirs_that_are_not_known_everywhere_are_left_to_the_reader(tmp_path: Path) -> None:
    """One broker would not say: no line is right for all agents, so there is a comment in its place."""
    world = World()
    world.brokers[2].log_dirs = REFUSED
    text = written(world)

    assert loaded(text, tmp_path).agent.log_dirs == ()
    assert "#   broker 1: " in text
