"""What a person reads: all that is there, and what is not known as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seawall.cli.init_view import as_tree, show
from seawall.doctor.finding import fail, ok
from seawall.init import amounts
from seawall.init.assumed import PRICES, WORK
from seawall.init.report import Report, report
from seawall.settings import KafkaSettings, Settings
from tests.seawall.init.world import REFUSED, Log, Topic, World, days, world_of

SETTINGS = Settings(kafka=KafkaSettings(bootstrap="kafka-1:9092"))
OUT = Path("out")


def found(world: World) -> Report:
    return report(world.seen(), SETTINGS, prices=PRICES, work=WORK)


def shown(world: World, capsys: pytest.CaptureFixture[str]) -> str:
    bucket = [ok("s3 bucket", "there"), fail("s3 versioning", "never enabled", "Enable it.")]
    show(found(world), bucket, folder=OUT, prices=PRICES, work=WORK)
    return capsys.readouterr().out


def test_a_sound_cluster_reads_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The cluster in a line, its topics, what they would cost, and what to run next."""
    text = shown(world_of(orders=Topic(logs=[days(2, record_bytes=1000)])), capsys)

    assert "3 brokers, Kafka 4.3, KRaft with 3 controllers apart from the brokers" in text
    [row] = [line.split() for line in text.splitlines() if line.startswith("orders") and "day" in line]
    assert row[:3] == ["orders", "1", "3"]
    assert "7 d" in text
    assert "s3 versioning: never enabled" in text
    assert "seawall --settings out/seawall.toml agent --observe-only" in text


def test_what_is_not_known_stands_there_as_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody tells a thing: every place has a ?, none a zero, and the gaps are listed."""
    world = world_of(orders=Topic(settings=REFUSED, logs=[Log(offsets=REFUSED)]))
    world.cluster_id, world.quorum = None, REFUSED
    for broker in world.brokers.values():
        broker.settings = broker.log_dirs = broker.features = REFUSED
    text = shown(world, capsys)

    assert "cluster (without an id): 3 brokers, Kafka ?, who controls it is not known" in text
    assert "an unknown amount in all copies" in text
    assert "not known: what could not be looked at" in text
    assert "how far a log is: not allowed" in text
    assert "1 topic not counted: orders (its settings are not known: not allowed)" in text


def test_an_empty_cluster_is_said_to_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """No table without rows: a sentence in its place."""
    text = shown(World(), capsys)

    assert "there is no topic of your own yet" in text
    assert "if tiered" not in text


def test_of_many_topics_the_largest_are_shown_and_the_rest_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A thousand rows are no overview; the sum is of all of them."""
    world = World()
    for number in range(50):
        world.topics[f"t{number:02}"] = Topic(logs=[days(1.5, every_ms=600_000, record_bytes=number + 1)])
    text = shown(world, capsys)

    assert "and 30 topics more, which --json has" in text
    assert "30 more" in text
    assert "t49 " in text
    assert "t00 " not in text
    assert "all of these" in text


@pytest.mark.parametrize("is_dark", [False, True])
def test_programs_get_the_same_as_json(is_dark: bool) -> None:
    """Everything is plain JSON, whatever is missing; the files are named."""
    world = world_of(orders=Topic(logs=[days(2)]), users=Topic(own={"cleanup.policy": "compact"}))
    if is_dark:
        world.topics["orders"].settings = world.quorum = REFUSED
        world.brokers[1].log_dirs = REFUSED
    tree = json.loads(json.dumps(as_tree(found(world), [], folder=OUT, prices=PRICES, work=WORK)))

    assert [each["topic"] for each in tree["topics"]] == ["orders", "users"]
    assert (tree["controllers"] is None) is is_dark
    assert tree["estimate"]["prices"]["as_of"] == "2025-01"
    assert "out/policy.toml" in tree["files"]
    assert [each["what"] for each in tree["not_known"]] == (
        [
            "what is configured for a topic",
            "how large the replicas of a broker are",
            "who keeps the metadata",
        ]
        if is_dark
        else []
    )


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (amounts.size(None), "?"),
        (amounts.size(0), "0 B"),
        (amounts.size(1536), "1.5 KiB"),
        (amounts.size(500 * 2**20), "500 MiB"),
        (amounts.size(2.0**62), "4096 PiB"),
        (amounts.age(7 * 86_400_000), "7 d"),
        (amounts.age(5_400_000), "1.5 h"),
        (amounts.age(999), "999 ms"),
        (amounts.things(1, "copy", "copies"), "1 copy"),
        (amounts.things(2000, "topic"), "2,000 topics"),
    ],
)
def test_amounts_are_round(said: str, wanted: str) -> None:
    """As people say them."""
    assert said == wanted
