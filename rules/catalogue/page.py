"""docs/rules: one page a rule and an index, from the catalogue.

    python -m rules.catalogue.page docs/rules

Owns the words around the data. Invariant: a page says nothing that is not in the catalogue; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rules.catalogue import RULES, Deployment, Grace, Rule, Sort, rule_set_hash
from rules.severities import SEVERITY_WORDS

SORT_WORDS: Mapping[Sort, str] = {
    Sort.STATE: (
        "A state of things: looked at in every run, resolved when it is evaluated and false on complete "
        "evidence."
    ),
    Sort.HAPPENED: (
        "It happened: open until it is restored over the whole range, accepted as a loss, or withdrawn "
        "because late evidence justifies it. Never resolved by absence."
    ),
}
GRACE_WORDS: Mapping[Grace, str] = {
    Grace.NONE: "none",
    Grace.SETTLE: (
        "until whoever watches has looked again: twice a look and a start checkpoint, and the clocks' "
        "tolerance"
    ),
    Grace.RETENTION: (
        "twice a retention check, a start checkpoint, a file's deletion, a remote task and a look"
    ),
    Grace.WATERMARK: "twice a watermark checkpoint and a look, and the clocks' tolerance",
    Grace.CHECKPOINT: "two readings, a start checkpoint apart",
    Grace.OBJECT: "two readings of the store, ten minutes apart",
    Grace.COPY: "the deadline of a copy",
    Grace.DECLARE: "the policy's `declare_grace_ms`, before or after",
}
DEPLOYMENT_WORDS: Mapping[Deployment, str] = {
    Deployment.NONE: "untiered",
    Deployment.OURS: "tiered by Seawall",
    Deployment.KIP405: "tiered by the broker (KIP-405)",
    Deployment.KIP405_LAYOUT: "tiered by the broker, where an adapter knows its plugin's objects",
}
_HEAD = """\
# The rules

Made from `rules/catalogue` by `python -m rules.catalogue.page docs/rules`; a test compares them.
`seawall rules explain ID` says the same of one rule. Ids are stable for ever.

A log's verdict is VIOLATION while a finding on it is open, else INDETERMINATE where evidence is missing, else
SUSPECT where something holds inside its rule's grace, else PASS. A rule never turns missing evidence into
PASS, and resolves nothing on it. Where a rule does not apply to how a log is tiered, it is counted as not
applicable, and hinders no PASS.

`closes` says how a finding ends: `state` is evaluated in every run; `happened` stands until it is restored,
accepted or withdrawn.
"""


def pages() -> dict[str, str]:
    """Each file's name and text."""
    texts = {f"{each.id}.md": "\n".join(_page(each)) + "\n" for each in RULES}
    return {"README.md": "\n".join(_index()) + "\n", **texts}


def severity_words(each: Rule) -> str:
    words = SEVERITY_WORDS[each.severity]
    return f"{words}; critical when {each.rises_when}" if each.rises_when else words


def explained(each: Rule) -> Iterator[tuple[str, str]]:
    """What there is to say, by heading."""
    yield "Why", each.why
    yield "For example", each.example
    yield "What to do", each.remedy


def _index() -> Iterator[str]:
    yield _HEAD
    yield f"Rule set `{rule_set_hash()[:16]}`.\n"
    yield from ("| rule | severity | closes | the invariant |", "|---|---|---|---|")
    for each in RULES:
        severity = each.severity.value + (" (C)" if each.rises_when else "")
        yield f"| [{each.id}]({each.id}.md) | {severity} | {each.sort.value} | {each.invariant} |"


def _page(each: Rule) -> Iterator[str]:
    yield f"# {each.id}\n\n{each.invariant}\n"
    yield from ("| | |", "|---|---|")
    yield f"| severity | {severity_words(each)} |"
    yield f"| grace | {GRACE_WORDS[each.grace]} |"
    yield f"| applies to | {'; '.join(DEPLOYMENT_WORDS[one] for one in each.applies)} |"
    yield f"| evidence | {', '.join(f'`{kind}`' for kind in each.evidence)} |"
    yield f"| judged by | {each.judged_by} |"
    yield f"| version | {each.major} |\n"
    yield SORT_WORDS[each.sort]
    for heading, words in explained(each):
        yield f"\n## {heading}\n\n{words}"


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
