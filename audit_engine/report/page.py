"""A run as one HTML file: no network, no other file, nothing that was read can run.

    page(gathered)    the text of the file

The style and the script stand in the file, and its Content-Security-Policy names them by their hashes: the
browser runs these, and fetches nothing. Logs are data in a script element, shown as text.

Owns the assembly. Invariant: the same run gives the same bytes, wherever and whenever it is made.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

from audit_engine.report import cards, sections
from audit_engine.report.incidents import incidents, suppressed
from audit_engine.report.logs import columns
from audit_engine.report.markup import Markup, embedded, joined, tag, trusted
from audit_engine.report.values import WORST_FIRST, Gathered
from audit_engine.report.words import VERDICT_WORDS, number, things, time

STALE_MS = 26 * 3_600_000  # a daily run, and two hours


def page(gathered: Gathered, *, repair_verb: Sequence[str] | None = None) -> str:
    """`repair_verb`: the words before a finding's id that repair it, where Seawall has such a verb."""
    found = incidents(gathered.findings, gathered.changes)
    set_aside = suppressed(gathered.findings)
    run = gathered.run
    main = joined(
        sections.verdict(gathered, found, len(set_aside)),
        sections.unknown(gathered),
        sections.changes(gathered),
        cards.incidents(gathered, found, repair_verb),
        cards.suppressed(gathered, set_aside, repair_verb),
        sections.coverage(gathered),
        sections.trend(gathered),
        _logs(gathered),
    )
    style, script = _asset("style.css"), _asset("page.js")
    return Template(_asset("template.html")).substitute(
        policy=_policy(style, script),
        title=joined(f"Seawall: run {run['run']}, {run['verdict'].lower()}"),
        style=trusted(style),
        script=trusted(script),
        run=joined(f"Run {run['run']}"),
        as_of=time(run["as_of_ms"]),
        as_of_ms=str(int(run["as_of_ms"])),
        stale_ms=str(STALE_MS),
        main=main,
        provenance=sections.provenance(gathered),
        logs=embedded(columns(gathered)),
    )


def _logs(gathered: Gathered) -> Markup:
    """The table's frame; the script fills it."""
    logs = gathered.run["counts"]["logs"]
    if not gathered.statements:
        return sections.section("logs", "Logs", tag("p", "No log was judged.", class_="quiet"))
    shown = len(gathered.statements)
    note = "The worst first"
    if shown < logs:
        note = f"The worst {number(shown)} of {things(logs, 'log')}"
    filters = [
        tag(
            "label",
            tag("input", type="checkbox", value=str(at), checked=True),
            tag("span", each.capitalize(), class_=f"word {each.lower()}"),
            title=VERDICT_WORDS[each],
        )
        for at, each in enumerate(WORST_FIRST)
    ]
    heads = [
        ("name", "Log", None),
        ("verdict", "Verdict", None),
        ("why", "Why", None),
        ("start", "Starts at", "amount"),
        ("end", "High watermark", "amount"),
        ("lost", "No known copy", "amount"),
    ]
    head = tag(
        "tr",
        *(
            tag(
                "th",
                name if key == "why" else tag("button", name, type="button", data_sort=key),
                scope="col",
                class_=" ".join(each for each in (key, size) if each),
                aria_sort="none" if key != "why" else None,
            )
            for key, name, size in heads
        ),
    )
    return sections.section(
        "logs",
        "Logs",
        tag(
            "div",
            tag(
                "label",
                tag("span", "Search", class_="visually-hidden"),
                tag(
                    "input",
                    type="search",
                    id="search",
                    placeholder="Topic, rule or reason",
                    autocomplete="off",
                    spellcheck="false",
                ),
            ),
            tag(
                "fieldset",
                tag("legend", "Verdicts shown", class_="visually-hidden"),
                *filters,
                class_="filters",
            ),
            class_="tools",
        ),
        tag("p", "", id="found", class_="note", role="status"),
        tag(
            "table",
            tag("caption", "Logs", class_="visually-hidden"),
            tag("thead", head),
            tag("tbody", id="rows"),
            class_="logs",
        ),
        tag(
            "nav",
            tag("button", "Previous", type="button", id="previous"),
            tag("span", "", id="place"),
            tag("button", "Next", type="button", id="next"),
            class_="pages",
            aria_label="Pages of logs",
        ),
        tag(
            "noscript",
            tag(
                "p",
                "This table needs JavaScript. ",
                tag("code", "seawall audit findings"),
                " and ",
                tag("code", "seawall audit statement TOPIC"),
                " say the same.",
            ),
        ),
        note=note,
    )


def _policy(style: str, script: str) -> str:
    """Of the browser: nothing from anywhere but these two."""
    ours = f"style-src {_digest(style)}; script-src {_digest(script)}"
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; {ours}"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _asset(name: str) -> str:
    return (files("audit_engine.report") / "assets" / name).read_text(encoding="utf-8")
