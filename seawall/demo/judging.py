"""What the audit says, whom it tells, what it holds: the first run finds exactly what was done, the second
run closes all of it.

Owns these proofs. A finding too many is as wrong as one too few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seawall.backup.opened import now_ms
from seawall.demo.heard import beat
from seawall.demo.incidents import Finding, Incidents
from seawall.demo.records import TOPICS, TRIMMED
from seawall.demo.second_agent import BROKER_ID
from seawall.demo.spark import QUICK_TERMS, Audit
from seawall.demo.telling import Told, prove, spans
from seawall.demo.world import World
from seawall.holds.of_run import place_for
from seawall.holds.opened import opened

SETTLED_MS = QUICK_TERMS.settle_ms + 2_000  # past every grace of this broker's and these observers' intervals
CLOSED = ("restored", "resolved")


class Judging:
    def __init__(self, world: World, incidents: Incidents, audit: Audit) -> None:
        self._world, self._incidents, self._audit = world, incidents, audit
        self.findings: list[dict[str, Any]] = []

    def find(self) -> Told:
        events, logs = self._run()
        found = self._open()
        for topic, expected in self._incidents.expected.items():
            what = found.get(topic)
            prove(f"exactly what was done to {topic} is found", what == expected, what)
        others = {topic: each for topic, each in found.items() if topic not in self._incidents.expected}
        prove("nothing else is found", not others, others)
        roots = [each for each in self.findings if each["parent"] is None]
        return Told(
            says=f"{events:,} events of {logs} logs, ingested and judged: {len(self.findings)} findings in "
            f"{len({each['incident'] for each in self.findings})} incidents, exactly those that were made",
            facts={
                "events": events,
                "findings": sorted(
                    [self._world.topic_of(each["subject"]), each["rule_id"], each["severity"], each["ranges"]]
                    for each in self.findings
                ),
            },
            notes=tuple(self._said(each) for each in roots),
        )

    def alert(self) -> Told:
        said = self._audit.alert(self._world.settings)
        alerts = self._world.receiver.alerts()
        prove("every alert is signed with our secret", all(each.is_verified for each in alerts), alerts)
        incidents = {each["incident"] for each in self.findings}
        told = [each.says["data"]["incident"] for each in alerts]
        prove("each incident is told once", sorted(told) == sorted(incidents), (told, said))
        kinds = {each.says["type"] for each in alerts}
        prove("each is news", kinds == {"incident.opened"}, kinds)
        return Told(
            says=f"{len(alerts)} webhooks at {self._world.receiver.url}, one an incident, each signed by us",
            facts={"webhooks": len(alerts)},
        )

    def hold(self) -> Told:
        world, lines = self._world, list[str]()
        is_whole = place_for(world.settings, self.findings, lines.append)
        prove("every hold that was asked for stands", is_whole, lines)
        with opened(world.settings, lines.append) as holds:
            standing = holds.holds.standing()
        held = {each.place.topic for each in standing}
        expected = self._incidents.expected.items()
        wanted = {topic for topic, found in expected if "C" in {severity for _, severity, _ in found}}
        prove("the logs of critical findings are held", held == wanted, held)
        prove("our agents are bound", all(each.agents for each in standing), standing)
        versions = sum(each.versions.held for each in standing if each.versions is not None)
        refused = self._delete_for_good()
        prove("S3 refuses to delete a held version for good", refused == "AccessDenied", refused)
        whys = {each.kafka.why for each in standing if not each.kafka.is_held}
        return Told(
            says=f"{', '.join(sorted(held))}: our agents remove nothing more, and {versions} object versions "
            "are under legal hold: S3 refused to delete one",
            facts={"held": sorted(held), "versions": versions, "refused": refused},
            notes=tuple(f"a hold does not stop Kafka's own retention: {each}" for each in sorted(whys)),
        )

    def close(self) -> Told:
        """The second run. What was restored or put right is closed, and every log passes."""
        before = {each["finding_id"] for each in self.findings}
        told_before = len(self._world.receiver.alerts())
        self._run()
        still_open = self._open()
        prove("nothing is open any more", not still_open, still_open)
        ended = {each["finding_id"]: each["status"] for each in self.findings}
        prove("no other finding came", set(ended) == before, set(ended) ^ before)
        verdicts = {
            topic: [each["verdict"] for each in self._audit.statements(self._world.settings, topic)]
            for topic in TOPICS
        }
        passed = all(each == ["PASS"] for each in verdicts.values())
        prove("each log passes", passed and self._verdict == "PASS", (verdicts, self._verdict))
        self._audit.alert(self._world.settings)
        news = self._world.receiver.alerts()[told_before:]
        closed = [each.says["data"]["incident"] for each in news if each.is_verified]
        incidents = {each["incident"] for each in self.findings}
        prove("the end of each incident is told once", sorted(closed) == sorted(incidents), closed)
        counts = {status: list(ended.values()).count(status) for status in CLOSED}
        return Told(
            says=f"the next audit: {counts['restored']} findings closed by a verified restore, "
            f"{counts['resolved']} resolved, every log PASS; {len(news)} webhooks say that it is over",
            facts={"closed": counts, "verdict": self._verdict, "webhooks": len(news)},
        )

    def report(self, file: Path) -> Told:
        self._audit.report(self._world.settings, file)
        return Told(says=f"the run as a page: {file}", facts={"report": str(file)})

    def _run(self) -> tuple[int, int]:
        """Ingest and judge as of when all graces are over. How many events, of how many logs."""
        world = self._world
        world.wait_told("all evidence", *self._incidents.awaited)
        as_of_ms = now_ms() + SETTLED_MS
        world.wait(lambda: now_ms() > as_of_ms, "graces to be over")
        self._incidents.second.beat()
        world.wait_told(
            "both agents, heard past the moment of judgement",
            *(beat(each, after_ms=as_of_ms) for each in (1, BROKER_ID)),
        )
        ingested = self._audit.ingest(world.settings, world.config)
        prove("nothing is lost or unreadable", not (ingested.lost or ingested.quarantined), ingested)
        summary = self._audit.judge(world.settings, as_of_ms)
        self._verdict = summary.verdict.value
        self.findings = self._audit.findings(world.settings)
        return summary.events, summary.logs

    def _open(self) -> Mapping[str, set[Finding]]:
        found: dict[str, set[Finding]] = {}
        for each in self.findings:
            if each["status"] == "open":
                ranges = tuple((start, end) for start, end in each["ranges"])
                topic = self._world.topic_of(each["subject"])
                found.setdefault(topic, set()).add((each["rule_id"], each["severity"], ranges))
        return found

    def _said(self, finding: Mapping[str, Any]) -> str:
        topic = self._world.topic_of(finding["subject"])
        children = [each for each in self.findings if each["incident"] == finding["incident"]][1:]
        below = _counted([each["rule_id"] for each in children if each["parent"] is not None])
        said = f"{finding['rule_id']} {finding['severity']}  {topic} {spans(finding['ranges'])}"
        return f"{said}, and below it {below}" if below else said

    def _delete_for_good(self) -> str:
        """What the bucket says to whoever deletes a version that is held."""
        client, name = self._world.bucket.client(), self._world.bucket.name
        key = next(
            ref.key
            for record in self._world.records(TRIMMED)
            for _, ref in record.objects.present()
            if record.base_offset == 0
        )
        version = next(
            each["VersionId"] for each in client.list_object_versions(Bucket=name, Prefix=key)["Versions"]
        )
        try:
            client.delete_object(Bucket=name, Key=key, VersionId=version)
        except client.exceptions.ClientError as refused:
            return str(refused.response["Error"]["Code"])
        return "deleted"


def _counted(rule_ids: Sequence[str]) -> str:
    return ", ".join(f"{rule_ids.count(each)} {each}" for each in sorted(set(rule_ids)))
