"""The page's incidents: each with its picture, what is known of how it came about, what to do, its findings.

Owns their structure. Invariant: every finding that is shown has its remedy; of what is left out the number is
said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audit_engine.report.course import course
from audit_engine.report.drawing import NARROW, WIDE, is_small, legend, picture
from audit_engine.report.incidents import (
    FINDINGS_MAX,
    LISTED_MAX,
    PICTURED_MAX,
    PICTURES_MAX,
    Incident,
    is_open,
    name_of,
    named,
    what_went,
)
from audit_engine.report.logmap import log_map, story
from audit_engine.report.markup import Markup, prose, tag
from audit_engine.report.repair import Repair, explain, repair
from audit_engine.report.sections import section
from audit_engine.report.values import Gathered, Row, subject_of
from audit_engine.report.words import moment, number, offsets, things, time, title
from rules.identity import LogId
from rules.severities import SEVERITY_WORDS

RANGES_MAX = 4
OPEN_MAX = 3  # incidents that are unfolded when the page opens


def incidents(gathered: Gathered, found: Sequence[Incident], verb: Sequence[str] | None) -> Markup:
    if not found:
        words = "None is open." if gathered.run["counts"]["logs"] else "None is open, and nothing was judged."
        return section("incidents", "Incidents", tag("p", words, class_="quiet"))
    cards = [_card(each, gathered, verb, at) for at, each in enumerate(found[:PICTURED_MAX])]
    rest = found[PICTURED_MAX:]
    note = f"{things(len(found), 'incident')} open, the worst first"
    return section("incidents", "Incidents", *cards, _rest(rest, gathered, verb) if rest else None, note=note)


def suppressed(gathered: Gathered, found: Sequence[Row], verb: Sequence[str] | None) -> Markup | None:
    """Open findings for which somebody answers: counted, and shown when asked for."""
    if not found:
        return None
    rows = [_row(each, gathered, verb, who=str(each["suppressed_by"])) for each in found[:LISTED_MAX]]
    more = len(found) - len(rows)
    words = f"{things(len(found), 'finding')} open, and somebody answers for each"
    return tag(
        "section",
        tag(
            "details",
            tag("summary", tag("h2", "Suppressed", id="suppressed"), tag("span", words, class_="note")),
            tag("ul", *rows, class_="findings"),
            tag("p", f"{number(more)} more are not shown.", class_="quiet") if more else None,
            class_="fold",
        ),
        aria_labelledby="suppressed",
    )


def _card(incident: Incident, gathered: Gathered, verb: Sequence[str] | None, at: int) -> Markup:
    root = incident.root
    went = what_went(incident.lost_offsets, incident.recoverable_offsets)
    tags = [tag("span", SEVERITY_WORDS[incident.severity], class_=f"severity {incident.severity.lower()}")]
    if incident.change is not None:
        words = {"opened": "new in this run", "changed": "changed in this run"}[incident.change]
        tags.append(tag("span", words, class_="fresh"))
    head = tag(
        "summary",
        tag("span", *tags, class_="tags"),
        tag(
            "h3",
            tag("span", name_of(root, gathered), class_="name"),
            " ",
            tag("span", title(root["rule_id"])),
        ),
        tag(
            "span",
            tag("span", "since ", time(root["opened_ms"])),
            tag("strong", went) if went else None,
            class_="meta",
        ),
    )
    shown = incident.logs[:PICTURES_MAX]
    more_logs = len(incident.logs) - len(shown)
    body = [
        *(
            each
            for number_, log in enumerate(shown)
            for each in _evidence(incident, log, gathered, f"i{at}-{number_}")
        ),
        tag("p", f"{things(more_logs, 'more log')} in this incident.", class_="quiet") if more_logs else None,
        _what_to_do(repair(incident.open_findings[0], gathered, verb)),
        _findings(incident, gathered, verb),
    ]
    return tag(
        "details",
        head,
        tag("div", *body, class_="body"),
        class_=f"incident {incident.severity.lower()}",
        open=at < OPEN_MAX,
        id=f"incident-{root['finding_id'][:12]}",
    )


def _evidence(incident: Incident, log: LogId, gathered: Gathered, key: str) -> Iterator[Markup]:
    state = gathered.states.get(log)
    if state is None:
        return
    own = [each for each in incident.findings if subject_of(each["subject"]).log in (log, None)]
    about = [each for each in own if subject_of(each["subject"]).log == log]
    drawn = log_map(state, about)
    if drawn is not None:
        notes = [] if drawn.retention is None else [drawn.retention.words]
        if is_small(drawn.went, drawn):
            notes.append(f"Drawn is a part of {offsets(drawn.low, drawn.high)}.")
        yield tag(
            "figure",
            tag("figcaption", tag("b", drawn.name), tag("span", " ".join(notes))),
            picture(drawn, width=WIDE, key=f"{key}-w"),
            picture(drawn, width=NARROW, key=f"{key}-n"),
            legend(drawn),
        )
    yield from filter(None, [course(gathered.courses.get(log, ()), key)])
    happenings, earlier = story(state, [each for each in own if each in about or each is incident.root])
    if happenings:
        items = [
            tag("li", time(each.at_ms), tag("span", each.words), class_="found" if each.is_finding else None)
            for each in happenings
        ]
        yield tag("h4", "What happened")
        if earlier:
            yield tag("p", f"{things(earlier, 'earlier step')} not shown.", class_="quiet")
        yield tag("ol", *items, class_="story")


def _what_to_do(what: Repair) -> Markup:
    return tag(
        "div", tag("h4", "What to do"), tag("p", prose(what.words)), _commands(what.commands), class_="repair"
    )


def _commands(commands: Sequence[str]) -> Markup | None:
    if not commands:
        return None
    return tag(
        "div", *(tag("div", tag("code", each), class_="command") for each in commands), class_="commands"
    )


def _findings(incident: Incident, gathered: Gathered, verb: Sequence[str] | None) -> Markup:
    shown = incident.findings[:FINDINGS_MAX]
    more = len(incident.findings) - len(shown)
    words = f"{things(len(incident.findings), 'finding')}, the root first"
    return tag(
        "div",
        tag("h4", words),
        tag("ul", *(_row(each, gathered, verb) for each in shown), class_="findings"),
        tag("p", f"{things(more, 'more finding')}: seawall audit findings", class_="quiet") if more else None,
    )


def _row(finding: Row, gathered: Gathered, verb: Sequence[str] | None, who: str | None = None) -> Markup:
    """One line, and what to do about it underneath."""
    ranges = [offsets(start, end) for start, end in finding["ranges"]]
    told = ", ".join(ranges[:RANGES_MAX]) + (
        f" and {len(ranges) - RANGES_MAX} more" if len(ranges) > RANGES_MAX else ""
    )
    went = what_went(finding["lost_offsets"], finding["recoverable_offsets"])
    held = ", ".join(str(each) for each in finding["held_by"])
    facts = [
        ("About", _about(finding, gathered)),
        ("Offsets", told),
        ("Of these", went),
        ("Held by brokers", held),
        ("Since", f"{moment(finding['opened_ms'])} UTC"),
        ("Suppressed by", who or ""),
        ("Finding", finding["finding_id"]),
    ]
    what = repair(finding, gathered, verb)
    commands = (*what.commands, explain(finding["rule_id"]))
    is_child = finding["parent"] is not None
    return tag(
        "li",
        tag(
            "details",
            tag(
                "summary",
                tag(
                    "span",
                    finding["severity"],
                    class_=f"letter {finding['severity'].lower()}",
                    title=SEVERITY_WORDS.get(finding["severity"]),
                ),
                tag("b", finding["rule_id"]),
                tag("span", title(finding["rule_id"]), class_="what"),
                tag("span", told or _about(finding, gathered), class_="where"),
                None if is_open(finding) else tag("span", finding["status"], class_="closed"),
            ),
            tag(
                "div",
                tag("p", finding["note"], class_="said"),
                tag(
                    "dl",
                    *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value),
                    class_="small",
                ),
                tag("p", prose(what.words)) if is_open(finding) else None,
                _commands(tuple(dict.fromkeys(commands))) if is_open(finding) else None,
            ),
        ),
        class_="child" if is_child else None,
    )


def _about(finding: Row, gathered: Gathered) -> str:
    subject = subject_of(finding["subject"])
    rest = subject.rest if subject.topic_id is not None else ""
    name = named(subject, gathered.topics)
    return f"{name}, {rest}" if rest else name


def _rest(rest: Sequence[Incident], gathered: Gathered, verb: Sequence[str] | None) -> Markup:
    """Those beyond the ones with a picture, a line each."""
    rows = [_row(each.root, gathered, verb) for each in rest[:LISTED_MAX]]
    more = len(rest) - len(rows)
    return tag(
        "details",
        tag("summary", tag("h3", f"{things(len(rest), 'more incident')}")),
        tag("ul", *rows, class_="findings"),
        tag("p", f"{number(more)} more are not shown: seawall audit findings", class_="quiet")
        if more
        else None,
        class_="incident rest",
    )
