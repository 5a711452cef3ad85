"""`seawall tier scrub` as a user runs it: on a broker's own segments, in a real bucket, with its evidence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit_engine.spool import EmitterName, Spool
from audit_engine.wire import decode
from audit_engine.wire.envelope import Envelope
from rules.events import EmitterClosed, Heartbeat, Inventory, Scrubbed, ScrubOutcome
from seawall.cli.tier.scrub_view import exit_code, left
from seawall.events.kafka import hear
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.tier.scrub import NO_BROKER, SPOOL_NAME, emitter, state_folder
from tests.cluster.produce import create_topic, texts, transactional
from tests.seawall.cli.calling import Called, call, environ_of
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tests.tiering.scrub.kit import Kit
from tests.tiering.store.memory import MemoryStore
from tiering.scrub.report import Report
from tiering.store.patient import patient

VERIFIED, FAILED = ScrubOutcome.VERIFIED, ScrubOutcome.FAILED
SKIPPED, INCONCLUSIVE = ScrubOutcome.SKIPPED, ScrubOutcome.INCONCLUSIVE
TOPIC = "scrub-verb"
PREFIX = "reader-tests"  # where `tier_partition` puts its objects
Seawall = Callable[..., Called]


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket) -> Tiered:
    """Closed segments with transactions in them, copied by the uploader's own steps."""
    create_topic(broker, TOPIC)
    writer = transactional(broker, TOPIC, "scrub")
    for begin in range(0, 400, 50):
        writer.begin()
        writer.send_all(texts(400)[begin : begin + 50])
        writer.abort() if begin % 100 else writer.commit()
    return tier_partition(broker, bucket, TOPIC)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """A bucket in memory."""
    return Kit(store=patient(MemoryStore()), folder=tmp_path)


@pytest.fixture
def seawall(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> Seawall:
    """`seawall tier scrub TOPIC ...` with settings for both, and a state folder of its own."""
    environ = environ_of(broker, bucket.address, PREFIX) | {"XDG_STATE_HOME": str(tmp_path)}

    def run(*arguments: str, topic: str = TOPIC) -> Called:
        return call("tier", "scrub", topic, *arguments, environ=environ)

    return run


def folder_of(broker: LocalCluster, tmp_path: Path) -> Path:
    return state_folder(None, broker.cluster_id, {"XDG_STATE_HOME": str(tmp_path)})


def told(broker: LocalCluster, folder: Path) -> list[Envelope]:
    """Every event of this folder's runs that Kafka has, in the order of its numbers."""
    heard = (decode(each.value) for each in hear({"bootstrap.servers": broker.bootstrap}, since_ms=0))
    found = [each for each in heard if each.emitter.component == emitter(folder)]
    return sorted(found, key=lambda each: (each.emitter.incarnation, each.emitter_seq))


def totals(ran: Called) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)["totals"]
    return found


def test_what_a_broker_wrote_is_verified_and_told(
    tiered: Tiered, broker: LocalCluster, seawall: Seawall, tmp_path: Path
) -> None:
    """Each object of each copy, every byte; one event each, the log's inventory, how far it counted, and that
    it ends."""
    ran = seawall("--json", "--all")

    assert (ran.status, ran.stderr) == (0, "")
    wanted = {ref.key: ref for record in tiered.segments for _, ref in record.objects.present()}
    found = json.loads(ran.stdout)
    assert {each["key"]: each["outcome"] for each in found["objects"]} == dict.fromkeys(wanted, "verified")
    assert totals(ran)["read_bytes"] == sum(ref.size_bytes for ref in wanted.values())
    envelopes = told(broker, folder_of(broker, tmp_path))
    assert [each.emitter_seq for each in envelopes] == list(range(len(envelopes)))
    events = [each.event for each in envelopes]
    scrubbed = [each for each in events if isinstance(each, Scrubbed)]
    assert {each.object_key: each.version_id for each in scrubbed} == {
        key: ref.version_id for key, ref in wanted.items()
    }
    assert {each.scrub_outcome for each in scrubbed} == {ScrubOutcome.VERIFIED}
    [inventory] = [each for each in events if isinstance(each, Inventory)]
    assert (inventory.log, inventory.object_count) == (tiered.log, len(wanted))
    *_, beat, closed = events
    assert isinstance(beat, Heartbeat)
    assert isinstance(closed, EmitterClosed)
    assert (beat.last_seq, closed.event_count) == (len(events) - 3, len(events) - 1)


def test_a_budget_is_kept_over_runs_and_said(tiered: Tiered, seawall: Seawall) -> None:
    """One segment a run; the next run takes the next one, by what the state folder remembers."""
    sizes = [sum(ref.size_bytes for _, ref in each.objects.present()) for each in tiered.segments]
    budget = ("--max-bytes", str(max(sizes)), "--workers", "1", "--json", "--all", "--no-events")

    first, second = seawall(*budget), seawall(*budget)

    seen = [{each["base_offset"] for each in json.loads(ran.stdout)["objects"]} for ran in (first, second)]
    assert (first.status, second.status) == (0, 0)
    assert seen[0].isdisjoint(seen[1])
    assert totals(first)["read_bytes"] <= max(sizes)
    assert totals(first)["segments_left"] == len(sizes) - totals(first)["segments"] > 0


def test_an_object_under_a_marker_is_exit_1_with_its_key(
    tiered: Tiered, bucket: LocalBucket, seawall: Seawall
) -> None:
    """For people and for programs; restored, it is right again."""
    ref = tiered.segments[0].objects.aux
    assert ref is not None
    store = store_of(bucket)
    store.mark_deleted(ref.key)

    shown, said = seawall("--no-events"), seawall("--listed", "--json", "--no-events")

    assert (shown.status, said.status) == (1, 1)
    assert f"FAILED   {TOPIC}-0 at {tiered.segments[0].base_offset} .aux  {ref.key}" in shown.stdout
    assert f"deleted: version {ref.version_id} is there, under delete marker" in shown.stdout
    [failed] = json.loads(said.stdout)["objects"]
    assert (failed["key"], failed["outcome"], failed["problem"]) == (ref.key, "failed", "deleted")


def test_a_bucket_that_is_not_there_is_exit_4(tiered: Tiered, seawall: Seawall) -> None:
    """Nothing is missing in it: nothing could be told."""
    ran = seawall("--bucket", "no-such-bucket-here", "--json", "--no-events")

    assert ran.status == 4
    assert totals(ran)["failed"] == 0
    assert totals(ran)["inconclusive"] > 0


def test_a_topic_that_is_not_tiered_is_exit_4(tiered: Tiered, seawall: Seawall) -> None:
    """Nothing was looked at, and that is never clean."""
    ran = seawall("--no-events", topic="no-such-topic")

    assert ran.status == 4
    assert "nothing of no-such-topic is tiered" in ran.stdout


def test_two_scrubs_do_not_share_a_folder(
    tiered: Tiered, broker: LocalCluster, seawall: Seawall, tmp_path: Path
) -> None:
    """They would number their events as one: the second is refused before it looks at anything."""
    folder = folder_of(broker, tmp_path)
    with Spool(folder / SPOOL_NAME, EmitterName(broker.cluster_id, NO_BROKER, emitter(folder))):
        ran = seawall()

    assert (ran.status, ran.stdout) == (51, "")


@pytest.mark.parametrize(
    ("ended", "more", "status"),
    [
        ({VERIFIED: 3}, {}, 0),
        ({VERIFIED: 3, SKIPPED: 3}, {}, 0),
        ({VERIFIED: 3}, {"segments_left": 7, "logs_left": 1}, 0),
        ({VERIFIED: 3, SKIPPED: 3}, {"segments_too_large": 1}, 3),
        ({VERIFIED: 3, FAILED: 1, INCONCLUSIVE: 1}, {}, 1),
        ({VERIFIED: 3}, {"unknown_count": 1}, 1),
        ({VERIFIED: 3, INCONCLUSIVE: 1}, {"segments_too_large": 1}, 4),
        ({VERIFIED: 3}, {"unlisted_count": 1}, 4),
        ({VERIFIED: 3}, {"stopped": "the store is away"}, 4),
        ({SKIPPED: 3}, {}, 4),
        ({}, {}, 4),
    ],
)
def test_what_a_run_came_to_is_itsexit_code(
    ended: dict[ScrubOutcome, int], more: dict[str, Any], status: int
) -> None:
    """What is wrong comes before what is unclear; what a budget left for later is clean; nothing is not."""
    assert exit_code(Report(counts=Counter(ended), **more)) == status


def test_a_bucket_of_which_all_is_missing_is_doubted_aloud(kit: Kit) -> None:
    """The wrong bucket looks like that, too; the finding stands all the same."""
    kit.copy()
    kit.objects = patient(MemoryStore())

    report = kit.scrub()

    assert report.counts == {FAILED: 3}
    assert any("is it the right one?" in line for line in left(report))
    kit.objects = None
    assert not kit.scrub().is_all_missing


@pytest.mark.parametrize(
    "arguments",
    [
        ("--subset", "3/2"),
        ("--max-bytes", "0"),
        ("--max-bytes", "many"),
        ("--max-duration", "5m"),
        ("--rate", "-1"),
        ("--workers", "0"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments: tuple[str, str]) -> None:
    """Before any server is asked; the option is named."""
    ran = call("tier", "scrub", *arguments)

    assert ran.status == 2
    assert arguments[0] in ran.stderr


def test_each_folder_emits_under_a_name_of_its_own_for_ever(tmp_path: Path) -> None:
    """Two hosts that scrub shares of one cluster are two emitters; a name that was torn is made anew."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()

    names = [emitter(one), emitter(two), emitter(one)]
    (two / "emitter").write_bytes(b"\xff")

    assert names[0] == names[2] != names[1]
    assert emitter(two) not in names
