"""The page's sections on the run as a whole: verdict, what cannot be told, changes, coverage, trend.

Owns their structure. Invariant: INDETERMINATE has a section of its own above all findings wherever a log is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from audit_engine.report.changes import Changed, changed
from audit_engine.report.incidents import Incident
from audit_engine.report.markup import Markup, joined, tag
from audit_engine.report.trend import BARS_MAX, bars, runs_table
from audit_engine.report.values import WORST_FIRST, Gathered, Row
from audit_engine.report.words import (
    DEPLOYMENT_WORDS,
    VERDICT_WORDS,
    about,
    headline,
    number,
    things,
    time,
)

REASONS_MAX = 8
_ICONS = {
    "VIOLATION": "M7 7l10 10M17 7L7 17",
    "INDETERMINATE": "M9 9.2a3 3 0 1 1 4.4 2.6c-.9.5-1.4 1.1-1.4 2.2M12 17.2v.1",
    "SUSPECT": "M12 7v5.2l3.2 2",
    "PASS": "M7.2 12.4l3.2 3.2 6.4-6.8",
}


def icon(verdict: str) -> Markup:
    """A shape for each, so that nobody needs to tell colours apart."""
    return tag(
        "svg",
        tag("circle", cx=12, cy=12, r=10.5, class_="disc"),
        tag("path", d=_ICONS[verdict], class_="sign"),
        viewBox="0 0 24 24",
        width=24,
        height=24,
        class_=f"icon {verdict.lower()}",
        aria_hidden="true",
    )


def section(key: str, heading: str, *parts: str | None, note: str | None = None) -> Markup:
    head = tag("h2", heading, id=key)
    if note is not None:
        head = tag("div", head, tag("p", note, class_="note"), class_="head")
    return tag("section", head, *parts, aria_labelledby=key)


def verdict(gathered: Gathered, found: Sequence[Incident], suppressed: int) -> Markup:
    run, counts = gathered.run, _verdicts(gathered.run)
    word = run["verdict"]
    return tag(
        "section",
        tag(
            "div",
            icon(word),
            tag("h1", word.capitalize(), id="verdict"),
            tag("p", headline(word, counts), class_="headline"),
            class_=f"banner {word.lower()}",
        ),
        tag("p", "", id="stale", class_="stale", hidden=True, role="status"),
        _parts(counts),
        _figures(gathered, found, suppressed),
        aria_labelledby="verdict",
    )


def unknown(gathered: Gathered) -> Markup | None:
    """Why nothing can be told of the logs of which nothing can, and what is wrong with the evidence."""
    dark = [each for each in gathered.statements if each["missing"]]
    unmet = [each for each in gathered.run["gate"] if not each["is_met"]]
    silent = [each for each in gathered.emitters if each["is_silent"]]
    total = _verdicts(gathered.run).get("INDETERMINATE", 0)
    if not (total or unmet or silent or not gathered.run["counts"]["logs"]):
        return None
    reasons = Counter(str(one) for each in dark for one in dict.fromkeys(each["missing"]))
    rows = [
        tag("li", tag("b", things(logs, "log")), tag("span", why))
        for why, logs in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))[:REASONS_MAX]
    ]
    rows += [tag("li", tag("b", "Gate"), tag("span", f"{each['name']}: {each['detail']}")) for each in unmet]
    rows += [
        tag(
            "li",
            tag("b", "Silent"),
            tag("span", f"broker {each['broker_id']}, {each['component']}: it lives, and was not heard"),
        )
        for each in silent[:REASONS_MAX]
    ]
    left_out = max(0, len(reasons) - REASONS_MAX) + max(0, len(silent) - REASONS_MAX)
    if left_out:
        rows.append(
            tag("li", tag("b", "More"), tag("span", f"{things(left_out, 'reason')}, in the table of logs"))
        )
    words = "Not looked at is not well. Until this evidence comes, nothing here can pass."
    lead = f"{things(total, 'log')} cannot be told" if total else "Evidence is missing"
    return tag(
        "section",
        tag("h2", lead, id="unknown"),
        tag("p", words, class_="note"),
        tag("ul", *rows, class_="reasons") if rows else None,
        class_="unknown",
        aria_labelledby="unknown",
    )


def changes(gathered: Gathered) -> Markup:
    found = changed(gathered)
    if found is None:
        words = "This is the first run: there is nothing to compare it with."
        return section("changes", "Since the run before", tag("p", words, class_="quiet"))
    before = gathered.runs[-2] if len(gathered.runs) > 1 else None
    note = None if before is None else f"Run {before['run']}, {about(_apart(before, gathered.run))} earlier"
    if found.is_nothing:
        words = "No log's verdict and no finding is another."
        return section("changes", "Since the run before", tag("p", words, class_="quiet"), note=note)
    return section(
        "changes", "Since the run before", tag("ul", *_changes(found), class_="changes"), note=note
    )


def coverage(gathered: Gathered) -> Markup:
    run = gathered.run
    statements = gathered.statements
    seen, dark = Counter[str](), Counter[str]()
    for each in statements:
        for broker, how in each["replicas"]:
            (seen if how == "seen" else dark)[str(broker)] += 1
    deployments = Counter(str(each["deployment"]) for each in statements)
    silent = sum(bool(each["is_silent"]) for each in gathered.emitters)
    known = sum(logs for name, logs in _verdicts(run).items() if name != "INDETERMINATE")
    logs = run["counts"]["logs"]
    items = [
        ("Logs on complete evidence", _of(known, logs), known < logs or not logs),
        (
            "Replicas whose disk was seen",
            _of(sum(seen.values()), sum(seen.values()) + sum(dark.values())),
            bool(dark) or not seen,
        ),
        ("Emitters heard", _of(len(gathered.emitters) - silent, len(gathered.emitters)), bool(silent)),
        ("Gate", _gate(run), not all(each["is_met"] for each in run["gate"])),
        ("Events in this run", number(run["counts"]["events"]), not run["counts"]["events"]),
        (
            "How logs are kept",
            ", ".join(
                f"{number(n)} {DEPLOYMENT_WORDS.get(each, each)}" for each, n in deployments.most_common()
            )
            or "none",
            False,
        ),
    ]
    cells = [
        tag("div", tag("dt", name), tag("dd", value, class_="amiss" if is_amiss else None))
        for name, value, is_amiss in items
    ]
    return section("coverage", "Coverage", tag("dl", *cells, class_="facts"))


def trend(gathered: Gathered) -> Markup:
    runs = gathered.runs
    return section(
        "trend",
        "Past runs",
        *(bars(runs, size) for size in BARS_MAX),
        tag(
            "details",
            tag("summary", "The same in numbers"),
            tag(
                "div",
                runs_table(runs),
                class_="scroll",
                tabindex=0,
                role="region",
                aria_label="Past runs in numbers",
            ),
        ),
        note=f"{things(len(runs), 'run')}, a bar each, the newest on the right",
    )


def _parts(counts: dict[str, int]) -> Markup:
    """How many logs have which verdict: numbers, and a bar of them."""
    total = sum(counts.values())
    present = [each for each in WORST_FIRST if counts.get(each)]
    cells = [
        tag(
            "li",
            tag(
                "a",
                icon(each),
                tag("b", number(counts.get(each, 0))),
                tag("span", VERDICT_WORDS[each]),
                href="#logs",
                data_verdict=each,
            ),
            class_=f"{each.lower()}{'' if counts.get(each) else ' none'}",
        )
        for each in WORST_FIRST
    ]
    left, rects = 0.0, []
    least = {each: max(6.0, 1000 * counts[each] / total) for each in present}
    scale = 1000 / sum(least.values()) if least else 1
    for each in present:
        width = least[each] * scale
        rects.append(
            tag(
                "rect",
                x=f"{left:.1f}",
                y=0,
                width=f"{width - 2:.1f}",
                height=10,
                class_=f"bar {each.lower()}",
            )
        )
        left += width
    bar = tag(
        "svg", *rects, viewBox="0 0 1000 10", preserveAspectRatio="none", class_="share", aria_hidden="true"
    )
    return joined(bar if total else None, tag("ul", *cells, class_="counts", aria_label="Logs by verdict"))


def _figures(gathered: Gathered, found: Sequence[Incident], suppressed: int) -> Markup:
    lost = sum(each.lost_offsets for each in found)
    recoverable = sum(each.recoverable_offsets for each in found)
    new = sum(each.change == "opened" for each in found)
    items: list[tuple[str, str, str | None]] = [
        ("Open incidents", number(len(found)), f"{number(new)} new in this run" if new else None),
        ("Offsets with no known copy", number(lost), "in open incidents" if lost else None),
        ("Offsets recoverable", number(recoverable), "in open incidents" if recoverable else None),
        ("Suppressed", number(suppressed), "open, and somebody answers for them" if suppressed else None),
    ]
    cells = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else None))
        for name, value, more in items
    ]
    return tag("dl", *cells, class_="figures")


def _changes(found: Changed) -> Iterable[Markup]:
    for each in found.moved:
        names = ", ".join(each.names) + (
            f" and {number(each.logs - len(each.names))} more" if each.logs > len(each.names) else ""
        )
        yield tag(
            "li",
            tag("b", number(each.logs)),
            tag(
                "span",
                "from ",
                tag("span", each.before.capitalize(), class_=f"word {each.before.lower()}"),
                " to ",
                tag("span", each.now.capitalize(), class_=f"word {each.now.lower()}"),
                tag("small", names),
            ),
            class_="worse" if each.is_worse else "better",
        )
    findings = [
        ("opened", "opened", "worse"),
        ("changed", "changed", "even"),
        ("restored", "restored", "better"),
        ("resolved", "resolved", "better"),
        ("accepted", "accepted as lost", "even"),
        ("withdrawn", "withdrawn: late evidence justifies them", "better"),
    ]
    for change, words, way in findings:
        if found.findings.get(change):
            yield tag(
                "li",
                tag("b", number(found.findings[change])),
                tag("span", f"{_noun(found.findings[change])} {words}"),
                class_=way,
            )
    if found.new_logs:
        yield tag(
            "li",
            tag("b", number(found.new_logs)),
            tag("span", f"{_logs(found.new_logs)} judged for the first time"),
            class_="even",
        )
    if found.gone_logs:
        yield tag(
            "li",
            tag("b", number(found.gone_logs)),
            tag("span", f"{_logs(found.gone_logs)} judged before, and not any more"),
            class_="worse",
        )


def _logs(count: int) -> str:
    return "log" if count == 1 else "logs"


def _noun(count: int) -> str:
    return "finding" if count == 1 else "findings"


def _verdicts(run: Row) -> dict[str, int]:
    return {str(name): int(logs) for name, logs in run["counts"]["verdicts"].items()}


def _apart(before: Row, run: Row) -> int:
    return int(run["as_of_ms"]) - int(before["as_of_ms"])


def _of(part: int, whole: int) -> str:
    if not whole:
        return "none"
    return f"{number(part)} of {number(whole)}"


def _gate(run: Row) -> str:
    if not run["gate"]:
        return "not used"
    unmet = [str(each["name"]) for each in run["gate"] if not each["is_met"]]
    return f"not met: {', '.join(unmet)}" if unmet else f"all {len(run['gate'])} expectations met"


def provenance(gathered: Gathered) -> Markup:
    run = gathered.run
    took = int(run["ended_ms"]) - int(run["began_ms"])
    items = [
        ("Judged as of", time(run["as_of_ms"])),
        ("Run", f"{run['run']}, in {about(took)}"),
        ("Rules", tag("code", run["rules_hash"][:16])),
        ("Content", tag("code", run["content_hash"][:16])),
        ("Attempt", tag("code", run["attempt"][:16])),
        ("Seawall", run["seawall_version"]),
    ]
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in items), class_="provenance"
    )
