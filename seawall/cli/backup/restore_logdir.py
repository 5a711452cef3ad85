"""`seawall backup restore-logdir`: put a plan's range back into brokers' log dirs, while they are stopped."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from backup.catalogue.bytes import StoredPieces
from backup.logdir.apply import Restore, Restored, check, restore
from backup.logdir.errors import WouldBeDeleted
from backup.logdir.orchestrate import Here, check_after, places, restore_here, steps, try_undo
from backup.logdir.prospect import Prospect, look
from backup.logdir.replica import Wanted
from backup.logdir.retention import KEEPING
from backup.logdir.ticket import read_ticket, ticket_of, write_ticket
from backup.plan import Plan, Range
from backup.plan.render import lines_of, size
from backup.plan.target import expect_target
from backup.report import members_of_other
from rules.events import RestoreTarget
from seawall.backup.commands import Commands
from seawall.cli.backup.bars import stepping_bar
from seawall.cli.backup.options import Rate, Report, SignWith, StateDir, settings_of
from seawall.cli.backup.signed import SignedWith, plan_from
from seawall.cli.exit_codes import CLEAN
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region
from seawall.settings import Settings
from tiering.cluster.interface import LeaderOffsets, TopicPartition


def restore_logdir(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="What `seawall backup plan --out` wrote.")],
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log dir of a broker on this host; may be repeated."),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; else it is only checked.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put the directories back as they were.")] = False,
    after: Annotated[
        bool, typer.Option("--check-after", help="Look at the replicas once their brokers are up again.")
    ] = False,
    stop: Annotated[
        str | None,
        typer.Option("--stop", metavar="CMD", help="What stops a broker of this host; {broker} is its id."),
    ] = None,
    start: Annotated[str | None, typer.Option("--start", metavar="CMD", help="What starts it.")] = None,
    set_retention: Annotated[
        bool, typer.Option("--set-retention", help="Have the topic keep everything, first.")
    ] = False,
    put_retention_back: Annotated[
        bool, typer.Option("--put-retention-back", help="Undo --set-retention, once you are done.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Segments fetched at once.")] = 4,
    rate: Rate = None,
    report: Report = None,
    sign_with: SignWith = None,
    signed_with: SignedWith = None,
    principal: Annotated[
        str | None, typer.Option("--as", metavar="WHO", help="Who answers for it; by default who runs this.")
    ] = None,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Put a plan's range back into the log dirs of all replicas, at its own offsets.

    1. Without --log-dir, while the cluster is up: what must stop, what goes offline with it, whether
    retention would take the range again, and the steps host by host. What was found is kept beside the plan.

    2. With --log-dir and --confirm, every replica's broker stopped: fetch, verify, put in. With --stop and
    --start it stops and starts the brokers itself, where all replicas are on this host.

    3. With --check-after, the brokers up again: every replica's log start, twice, a retention check apart.

    Exits with 0 if it is as it should be; 65 says what kept it from being done, and then nothing has changed.
    """
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    planned = plan_from(plan, signed_with)
    expect_target(planned, RestoreTarget.LOG_DIRECTORY)
    at_most = None if rate is None else int(rate)
    work = _Work(settings=settings, planned=planned, plan=plan, workers=workers, rate=at_most)
    who = principal or getpass.getuser()
    reporting = _Reporting(file=report, sign_with=sign_with, state_dir=state_dir, principal=who)
    if put_retention_back:
        work.retention_back()
    elif not log_dir:
        work.prepare(set_retention=set_retention)
    elif undo:
        for directory in places(log_dir, work.wanted).values():
            found = try_undo(directory, work.wanted)
            typer.echo(f"{directory}: {'as it was before' if found else 'nothing to undo'}")
    elif after:
        work.look_after(places(log_dir, work.wanted))
        work.tell(who, places(log_dir, work.wanted), state_dir)
    elif not confirm:
        work.check(places(log_dir, work.wanted))
    elif stop is not None and start is not None:
        work.all_here(places(log_dir, work.wanted), stop, start, reporting)
        work.tell(who, places(log_dir, work.wanted), state_dir)
    else:
        work.apply(places(log_dir, work.wanted), reporting)
    raise typer.Exit(CLEAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One plan, carried out by hand or by itself."""

    settings: Settings
    planned: Plan
    plan: Path
    workers: int
    rate: int | None

    @property
    def wanted(self) -> Wanted:
        return Wanted(log=self.planned.body.log, topic=self.planned.body.topic)

    @property
    def asked(self) -> Restore:
        body = self.planned.body
        return Restore(
            plan_id=self.planned.hash,
            wanted=self.wanted,
            pieces=body.pieces,
            start=body.range.start,
        )

    def prospect(self) -> Prospect:
        from seawall.connections import open_cluster

        return look(
            open_cluster(self.settings, client_id="seawall-backup"),
            self.planned.body.log,
            self.planned.body.topic,
        )

    def prepare(self, *, set_retention: bool) -> None:
        """Everything that only a running cluster can tell."""
        found = self._kept(set_retention=set_retention)
        typer.echo("\n".join(lines_of(self.planned)))
        offline = ", ".join(f"{topic}-{number}" for topic, number in found.outage.offline) or "nothing else"
        typer.echo(
            f"brokers to stop: {', '.join(map(str, found.outage.stopping))}; offline with them: {offline}"
        )
        path = write_ticket(self.plan, ticket_of(found, self.planned.hash, _now_ms()))
        typer.echo(f"kept in {path}; take it to each host with the plan. Then:")
        for line in steps(found.outage, self.plan.name):
            typer.echo(line)

    def _kept(self, *, set_retention: bool) -> Prospect:
        """The prospect, once retention would keep the range."""
        body = self.planned.body
        found = self.prospect()
        records = [piece.record for piece in body.pieces]
        until_ms = _now_ms() + body.keep_for_ms
        against = found.complaints(records, live_bytes=None, until_ms=until_ms)
        if against and set_retention:
            self._set_retention(KEEPING)
            found = self.prospect()
            against = found.complaints(records, live_bytes=None, until_ms=until_ms)
        if against:
            raise WouldBeDeleted(directory=Path(self.wanted.directory_name), why="; ".join(against))
        return found

    @property
    def _retention_file(self) -> Path:
        return self.plan.with_name(f"{self.plan.name}.retention.json")

    def _set_retention(self, values: Mapping[str, str]) -> None:
        from seawall.connections import kafka_config, open_cluster
        from seawall.holds.kafka import KafkaTopicConfigs
        from tiering.cluster.settings import Setting, Source

        topic = self.planned.body.topic
        entries = open_cluster(self.settings).topic_entries([topic])[topic]
        assert isinstance(entries, Mapping), "it was asked a moment ago"
        own: dict[str, Setting] = {
            name: each for name, each in entries.items() if each.source is Source.TOPIC
        }
        before = {name: own[name].value if name in own else None for name in values}
        if not self._retention_file.exists():  # what the first run found is what it was
            self._retention_file.write_text(json.dumps({"topic": topic, "before": before}, indent=1), "utf-8")
        KafkaTopicConfigs(kafka_config(self.settings)).alter(topic, values)
        typer.echo(f"{topic} keeps everything now; what it was is in {self._retention_file}")

    def retention_back(self) -> None:
        from seawall.connections import kafka_config
        from seawall.holds.kafka import KafkaTopicConfigs

        found = json.loads(self._retention_file.read_bytes())
        KafkaTopicConfigs(kafka_config(self.settings)).alter(found["topic"], found["before"])
        typer.echo(f"{found['topic']}: {found['before']}")

    def check(self, found: Mapping[int, Path]) -> None:
        read_ticket(self.plan, self.planned.hash, _now_ms())
        for broker_id, directory in sorted(found.items()):
            files = check(directory, self._of(broker_id))
            total = size(sum(each.record.size_bytes for each in files))
            typer.echo(f"{directory}: {len(files)} segments, {total}, would be put back")
        typer.echo("seawall: nothing was changed: do it with --confirm", err=True)

    def _of(self, broker_id: int) -> Restore:
        asked = self.asked
        return replace(asked, wanted=replace(asked.wanted, broker_id=broker_id))

    def apply(self, found: Mapping[int, Path], reporting: _Reporting) -> None:
        """The brokers of these log dirs are stopped."""
        began_ms = _now_ms()
        ticket = read_ticket(self.plan, self.planned.hash, began_ms)
        told: list[Restored] = []
        for broker_id, directory in sorted(found.items()):
            with self._bar(1) as on_progress:
                done = restore(
                    directory,
                    self._of(broker_id),
                    self._pieces(),
                    workers=self.workers,
                    on_progress=on_progress,
                )
            typer.echo(_told(done))
            told.append(done)
        reporting.write(self.planned, told, began_ms)
        left = [each for each in ticket.brokers if each not in found]
        if left:
            said = ", ".join(map(str, left))
            typer.echo(f"seawall: restore on brokers {said}, too, before any of them is started", err=True)
        typer.echo(f"seawall: then start broker {ticket.brokers[0]} first", err=True)

    def all_here(self, found: Mapping[int, Path], stop: str, start: str, reporting: _Reporting) -> None:
        began_ms = _now_ms()
        prospect = self._kept(set_retention=False)
        write_ticket(self.plan, ticket_of(prospect, self.planned.hash, _now_ms()))
        brokers = Commands(stop_with=stop, start_with=start, log_dirs=found, is_up=self._is_up, tell=_say)
        here = Here(
            asked=self.asked,
            outage=prospect.outage,
            log_dirs=found,
            brokers=brokers,
        )
        with self._bar(len(found)) as on_progress:
            told = restore_here(
                here, self._pieces(), tell=_say, on_progress=on_progress, workers=self.workers
            )
        for done in told:
            typer.echo(_told(done))
        self.look_after(found)
        reporting.write(self.planned, told, began_ms)

    def look_after(self, found: Mapping[int, Path]) -> None:
        ticket = read_ticket(self.plan, self.planned.hash, None)
        check_after(
            found,
            self.wanted,
            self.planned.body.range.start,
            leader_start=self._leader_start,
            interval_s=ticket.check_interval_ms / 1000 + 1,
            pause=time.sleep,
            tell=typer.echo,
        )

    def tell(self, principal: str, found: Mapping[int, Path], state_dir: Path | None) -> None:
        from seawall.backup.told import tell_restored

        waiting = tell_restored(
            self.settings,
            self.planned,
            RestoreTarget.LOG_DIRECTORY,
            brokers=sorted(found),
            principal=principal,
            state_dir=state_dir,
        )
        if waiting:
            typer.echo(f"seawall: Kafka does not have {waiting} events yet", err=True)

    def _pieces(self) -> StoredPieces:
        from seawall.backup.opened import pace_of
        from seawall.connections import segment_store

        return StoredPieces(segment_store(self.settings), pace_of(self.rate))

    def _bar(self, replicas: int) -> AbstractContextManager[Callable[[int], None]]:
        total = replicas * sum(piece.record.size_bytes for piece in self.planned.body.pieces)
        return stepping_bar("restoring", total, in_bytes=True)

    def _leader_start(self) -> int | None:
        from seawall.connections import open_cluster

        at = TopicPartition(self.planned.body.topic, self.planned.body.log.partition)
        answer = open_cluster(self.settings).leader_offsets([at])[at]
        return answer.log_start if isinstance(answer, LeaderOffsets) else None

    def _is_up(self, broker_id: int) -> bool:
        from seawall.connections import open_cluster
        from tiering.cluster.errors import ClusterError

        try:
            return broker_id in open_cluster(self.settings).identity().broker_ids
        except ClusterError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reporting:
    """Where a report goes, if one is wanted."""

    file: Path | None
    sign_with: Path | None
    state_dir: Path | None
    principal: str

    def write(self, planned: Plan, told: list[Restored], began_ms: int) -> None:
        if self.file is None:
            return
        from seawall.backup.reporting import write_report

        members = members_of_other(
            planned,
            self.principal,
            whole=Range(planned.body.range.start, max((each.joined_at for each in told), default=0)),
            started_at_ms=began_ms,
            ended_at_ms=_now_ms(),
            was_over=all(each.was_done for each in told),
            size_bytes=sum(each.size_bytes for each in told),
            replicas=[
                {
                    "broker_id": each.broker_id,
                    "directory": str(each.directory),
                    "log_start": each.log_start,
                    "joined_at": each.joined_at,
                    "segments": each.files,
                    "size_bytes": each.size_bytes,
                    "was_done": each.was_done,
                }
                for each in told
            ],
        )
        write_report(self.file, members, self.sign_with, self.state_dir)
        typer.echo(f"report: {self.file}")


def _told(done: Restored) -> str:
    what = "was restored already" if done.was_done else f"{done.files} segments, {size(done.size_bytes)}"
    return f"{done.directory}: [{done.log_start}, {done.joined_at}) put back: {what}"


def _say(what: str) -> None:
    typer.echo(f"seawall: {what}", err=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
