"""The columns of what an audit run leaves behind. Each row names its run, and which attempt at it wrote it.

    audit_runs        one row a run, written last: the commit of all the others
    audit_state       what is carried of each log that was folded; of an excused one its last row stands
    audit_emitters    what is carried of each emitter: how far it was heard, and what of it never came
    audit_findings    what became of a finding in a run: opened, changed, ended; never overwritten
    audit_statements  what a run says of each log: verdict, coverage, evidence, and a hash over it
    audit_outbox      what somebody must be told, for whoever delivers it
    audit_decisions   what people decided about findings; of no run, and numbered by itself

An attempt counts once `audit_runs` names it; rows of any other are nobody's. So nothing is half-written, and
no attempt touches what another wrote.

Owns the names and types. Invariant: `audit_runs` has one row a run, and names one attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

RUNS = "audit_runs"
STATE = "audit_state"
EMITTERS = "audit_emitters"
FINDINGS = "audit_findings"
STATEMENTS = "audit_statements"
OUTBOX = "audit_outbox"
DECISIONS = "audit_decisions"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    sql_type: str
    comment: str


# What `rules.machine.calm.Calm` has: by these numbers a log is excused from the fold.
CALM = (
    "STRUCT<until_ms: BIGINT, keep_ms: BIGINT, position_ms: BIGINT, events: BIGINT, leader_id: INT,"
    " leader_epoch: INT, watermark: BIGINT, brokers: ARRAY<INT>,"
    " lives: ARRAY<STRUCT<broker_id: INT, directory_id: STRING, incarnation: BIGINT, start: BIGINT,"
    " local_start: BIGINT>>,"
    " heard: ARRAY<STRUCT<broker_id: INT, component: STRING, incarnation: BIGINT, next_seq: BIGINT>>>"
)

_ATTEMPT = (
    ResultColumn("run", "BIGINT", ""),
    ResultColumn("attempt", "STRING", "random: which attempt at the run wrote it"),
)
_LOG = (
    *_ATTEMPT,
    ResultColumn("cluster_id", "STRING", ""),
    ResultColumn("topic_id", "STRING", ""),
    ResultColumn("partition", "INT", ""),
    ResultColumn("topic", "STRING", "its name, for people"),
)

DECISIONS_COLUMNS = (
    ResultColumn("number", "BIGINT", "rises by one: a run names the last that it took into account"),
    ResultColumn("decision_id", "STRING", "the same for the same words about the same finding"),
    ResultColumn("sort", "STRING", "suppress, ack, accept"),
    ResultColumn("finding_id", "STRING", ""),
    ResultColumn("rule_id", "STRING", ""),
    ResultColumn("subject", "STRING", "what the finding is about"),
    ResultColumn("owner", "STRING", "who answers for it"),
    ResultColumn("reason", "STRING", ""),
    ResultColumn("decided_at_ms", "BIGINT", ""),
    ResultColumn("expires_at_ms", "BIGINT", "of a suppression: from then on it pages again"),
)

RESULTS: dict[str, tuple[ResultColumn, ...]] = {
    RUNS: (
        ResultColumn("run", "BIGINT", "counts from 1"),
        ResultColumn("attempt", "STRING", "whose rows count"),
        ResultColumn("as_of_ms", "BIGINT", "the moment as of which it judged"),
        ResultColumn("cut", "STRING", "JSON: the offsets it saw"),
        ResultColumn("rules_hash", "STRING", "of the rules it judged by"),
        ResultColumn("terms", "STRING", "JSON: graces and suppressions"),
        ResultColumn("content_hash", "STRING", "over statements and findings, canonical and sorted"),
        ResultColumn("gate", "STRING", "JSON: what the gate found of the slice"),
        ResultColumn("counts", "STRING", "JSON: events, logs, verdicts, findings"),
        ResultColumn("verdict", "STRING", "the worst of all logs'"),
        ResultColumn("began_ms", "BIGINT", ""),
        ResultColumn("ended_ms", "BIGINT", ""),
        ResultColumn("seawall_version", "STRING", ""),
    ),
    STATE: (
        *_LOG,
        ResultColumn("state", "BINARY", "canonical JSON"),
        ResultColumn("state_hash", "STRING", "SHA-256 of it"),
        ResultColumn("position_ms", "BIGINT", "observed_at_ms of the last event in it"),
        ResultColumn("findings", "STRING", "JSON: those that the state has"),
    ),
    EMITTERS: (
        *_ATTEMPT,
        ResultColumn("cluster_id", "STRING", ""),
        ResultColumn("broker_id", "INT", ""),
        ResultColumn("component", "STRING", ""),
        ResultColumn("state", "STRING", "JSON: ranges of numbers, by incarnation"),
        ResultColumn("gaps", "STRING", "JSON: what logs were told of as missing"),
        ResultColumn("findings", "STRING", "JSON: about the emitter"),
        ResultColumn("is_silent", "BOOLEAN", "it lives, and was not heard up to the cut"),
    ),
    FINDINGS: (
        *_ATTEMPT,
        ResultColumn("finding_id", "STRING", "for ever the same for the same fault"),
        ResultColumn("change", "STRING", "opened, changed, resolved, restored, accepted, withdrawn"),
        ResultColumn("rule_id", "STRING", ""),
        ResultColumn("severity", "STRING", "C, E or W"),
        ResultColumn("subject", "STRING", "what it is about"),
        ResultColumn("detail", "STRING", "JSON: the finding as it stands"),
    ),
    STATEMENTS: (
        *_LOG,
        ResultColumn("verdict", "STRING", "PASS, SUSPECT, INDETERMINATE, VIOLATION"),
        ResultColumn("statement", "STRING", "JSON: claim, coverage, evidence"),
        ResultColumn("statement_hash", "STRING", "SHA-256 of it"),
        ResultColumn("state_run", "BIGINT", "the run whose row of audit_state is the log's last"),
        ResultColumn("calm", CALM, "what it is excused by; null where it is folded"),
        ResultColumn("words", "STRING", "of a calm log, the statement with places for numbers"),
    ),
    OUTBOX: (
        *_ATTEMPT,
        ResultColumn("incident", "STRING", "the root's finding_id: one page an incident"),
        ResultColumn("severity", "STRING", "the worst in it"),
        ResultColumn("message", "STRING", "JSON: what to tell"),
    ),
}
