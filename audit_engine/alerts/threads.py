"""News folded into threads. A thread is what people see as one thing: told together, in order, ended once.

A thread is an incident. Where one run opens more than STORM_OVER incidents of one rule in one cluster (a
setting that went wrong on two hundred topics), they are one thread: one fault, one page.

A finding belongs to each thread under which it was ever told: where a later run gives it to another incident,
the thread that had it says so once, and ends with it, not before. A thread ends when none of its findings is
open any more, and only news says that of a finding:

    restored, accepted     at once: they are statements
    resolved, withdrawn    once a complete run stands behind them; until then they are held back

What is suppressed is not told; what was told and becomes suppressed stays open and says so.

Owns the fold. Invariant: the same runs in the same order come to the same messages, ids too; a run that is
taken in twice comes to none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from audit_engine.alerts.message import STOOD_MAX, Message, State, Stood, message_id
from audit_engine.alerts.news import Changed, Finding, Page, RunNews, own, worst
from rules.machine.findings import SEVERITIES

STORM_OVER = 10  # new incidents of one rule and cluster in one run, beyond which they are one thread

OPEN = "open"
_BY_ABSENCE = frozenset({"resolved", "withdrawn"})


@dataclass(slots=True, kw_only=True)
class Kept:
    """What was told last of a finding, and under which threads. `run` is where that came from."""

    finding: Finding
    change: str
    threads: tuple[str, ...]
    run: int
    opened_run: int
    told_as: tuple[tuple[str, str], ...] = ()  # thread and severity, each pair that was ever told
    held_back: tuple[str, Finding] | None = None  # an end that no complete run has confirmed yet

    @property
    def is_open(self) -> bool:
        return bool(self.finding["status"] == OPEN)


@dataclass(slots=True, kw_only=True)
class Thread:
    title: str
    peak: str
    is_open: bool
    run: int  # the last that told of it


@dataclass(slots=True, kw_only=True)
class Standing:
    """Everything told so far."""

    findings: dict[str, Kept] = field(default_factory=dict)
    incidents: dict[str, str] = field(default_factory=dict)  # its thread
    threads: dict[str, Thread] = field(default_factory=dict)
    attempts: dict[int, str] = field(default_factory=dict)


def take(standing: Standing, news: RunNews) -> list[Message]:
    """The run folded in; what is to be told of it, threads in the order of their names."""
    if standing.attempts.get(news.run) == news.attempt:
        return []
    changes = _confirmed(standing, news)
    pages = [*news.pages, *_not_found_again(standing, news)]
    standing.attempts[news.run] = news.attempt
    _assign(standing, pages, news.run)
    told: dict[str, list[tuple[str, Finding]]] = {}
    for what, threads in changes:
        _note(told, threads, what)
    for page in pages:
        for each in page.changes:
            for threads, what in _applied(standing, page.incident, each, news):
                _note(told, threads, what)
    members: dict[str, list[Kept]] = {}
    for kept in standing.findings.values():
        for thread in kept.threads:
            members.setdefault(thread, []).append(kept)
            told_as = (thread, str(kept.finding["severity"]))
            if kept.is_open and told_as not in kept.told_as:
                kept.told_as = (*kept.told_as, told_as)
    messages = (_message(standing, name, what, members[name], news) for name, what in sorted(told.items()))
    return [each for each in messages if each is not None]


def _note(
    told: dict[str, list[tuple[str, Finding]]], threads: Iterable[str], what: tuple[str, Finding]
) -> None:
    for thread in threads:
        told.setdefault(thread, []).append(what)


def _confirmed(standing: Standing, news: RunNews) -> list[tuple[tuple[str, Finding], tuple[str, ...]]]:
    """Ends that waited for a complete run, unless this one says something else of them."""
    if not news.is_complete:
        return []
    named = {each.finding["finding_id"] for page in news.pages for each in page.changes}
    found = []
    for finding_id, kept in sorted(standing.findings.items()):
        if kept.held_back is None:
            continue
        change, finding = kept.held_back
        kept.held_back = None
        if finding_id not in named:
            kept.change, kept.finding, kept.run = change, finding, news.run
            found.append(((change, finding), kept.threads))
    return found


def _not_found_again(standing: Standing, news: RunNews) -> list[Page]:
    """A run that was judged again and does not find what it found before: that was never so."""
    if news.run not in standing.attempts:
        return []
    named = {each.finding["finding_id"] for page in news.pages for each in page.changes}
    pages: dict[str, list[Changed]] = {}
    for finding_id, kept in sorted(standing.findings.items()):
        if kept.is_open and kept.opened_run == news.run == kept.run and finding_id not in named:
            gone = {**kept.finding, "status": "withdrawn"}
            pages.setdefault(kept.finding["incident"], []).append(Changed(change="withdrawn", finding=gone))
    return [Page(incident=incident, changes=tuple(each)) for incident, each in sorted(pages.items())]


def _assign(standing: Standing, pages: list[Page], run: int) -> None:
    """Gives each incident that is new its thread."""
    alike: dict[tuple[str, str], list[Page]] = {}
    for page in pages:
        if page.incident in standing.incidents:
            continue
        if not any(_is_to_tell(each.finding) for each in page.changes):
            _begin(standing, page.incident, _title(_root(page)))
            standing.incidents[page.incident] = page.incident
        else:
            root = _root(page)
            cluster = str(root["subject"]).partition("/")[0]
            alike.setdefault((cluster, str(root["rule_id"])), []).append(page)
    for (cluster, rule_id), of_it in sorted(alike.items()):
        if len(of_it) <= STORM_OVER:
            for page in of_it:
                _begin(standing, page.incident, _title(_root(page)))
                standing.incidents[page.incident] = page.incident
            continue
        storm = hashlib.sha256(f"storm\n{cluster}\n{rule_id}\n{run}".encode()).hexdigest()[:32]
        _begin(standing, storm, f"{rule_id} on {len(of_it)} incidents of cluster {cluster} at once")
        for page in of_it:
            standing.incidents[page.incident] = storm


def _is_to_tell(finding: Finding) -> bool:
    return bool(finding["status"] == OPEN and finding["suppressed_by"] is None)


def _begin(standing: Standing, thread: str, title: str) -> None:
    standing.threads[thread] = Thread(title=title, peak=SEVERITIES[0], is_open=False, run=0)


def _root(page: Page) -> Finding:
    own = (each.finding for each in page.changes if each.finding["finding_id"] == page.incident)
    return next(own, page.changes[0].finding)


def _title(root: Finding) -> str:
    ranges = " ".join(f"[{start}, {end})" for start, end in root["ranges"])
    what = f"{root['rule_id']} {root['subject']} {ranges}".rstrip()
    return f"{what}: {root['note']}" if root["note"] else what


def _applied(
    standing: Standing, incident: str, changed: Changed, news: RunNews
) -> list[tuple[tuple[str, ...], tuple[str, Finding]]]:
    """The finding as it is now, and which threads are to hear of what."""
    finding, change = changed.finding, changed.change
    thread = standing.incidents[incident]
    finding_id = str(finding["finding_id"])
    kept = standing.findings.get(finding_id)
    is_open = finding["status"] == OPEN
    if (kept is None or not kept.is_open) and not _is_to_tell(finding):
        return []  # nobody was told that it is there, or is to be
    if kept is None:
        standing.findings[finding_id] = Kept(
            finding=finding, change=change, threads=(thread,), run=news.run, opened_run=news.run
        )
        return [((thread,), (change, finding))]
    if kept.run == news.run and own(kept.finding) == own(finding) and thread in kept.threads:
        return []  # the run was judged again, and says the same
    if not is_open and change in _BY_ABSENCE and not news.is_complete:
        kept.held_back = (change, finding)
        return []
    others = tuple(each for each in kept.threads if each != thread)
    is_told_to_others = thread not in kept.threads or kept.is_open != is_open
    if kept.is_open != is_open and is_open:
        kept.opened_run = news.run
    kept.finding, kept.change, kept.run, kept.held_back = finding, change, news.run, None
    if thread not in kept.threads:
        kept.threads = (*kept.threads, thread)
    heard: list[tuple[tuple[str, ...], tuple[str, Finding]]] = [((thread,), (change, finding))]
    if others and is_told_to_others:
        heard.append((others, (change, finding)))
    return heard


def _message(
    standing: Standing, name: str, changes: list[tuple[str, Finding]], members: list[Kept], news: RunNews
) -> Message | None:
    thread = standing.threads[name]
    news_ids = {finding["finding_id"] for _, finding in changes}
    stood = [
        Stood(
            finding=kept.finding,
            change=kept.change,
            is_open=kept.is_open,
            is_news=kept.finding["finding_id"] in news_ids,
            severities=tuple(severity for thread_told, severity in kept.told_as if thread_told == name),
        )
        for kept in members
    ]
    is_open = any(each.is_open for each in stood)
    if not is_open and not thread.is_open:
        return None  # nobody was told that it began
    state = State.ENDED
    if is_open:
        state = State.CHANGED if thread.is_open else State.OPENED
    severity = worst({each.severity for each in stood if each.is_open} or {each.severity for each in stood})
    peak = worst({thread.peak, severity})
    standing.threads[name] = replace(thread, peak=peak, is_open=is_open, run=news.run)
    return Message(
        id=message_id(name, news.run, changes),
        thread=name,
        run=news.run,
        as_of_ms=news.as_of_ms,
        state=state,
        severity=severity,
        peak=peak,
        title=thread.title,
        finding_count=len(stood),
        open_count=sum(each.is_open for each in stood),
        stood=tuple(sorted(stood, key=_worst_first)[:STOOD_MAX]),
    )


def _worst_first(each: Stood) -> tuple[bool, int, bool, str, str]:
    rank = len(SEVERITIES) - SEVERITIES.index(each.severity)
    finding = each.finding
    return (not each.is_open, rank, finding["parent"] is not None, finding["rule_id"], finding["finding_id"])
