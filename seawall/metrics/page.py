"""docs/METRICS.md: every metric, from the collectors themselves.

python -m seawall.metrics.page > docs/METRICS.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from seawall.metrics.inventory import component_words, inventory

_HEAD = """\
# Metrics

Made from the collectors by `python -m seawall.metrics.page > docs/METRICS.md`; a test compares them. A
dashboard and alert rules that use them, with their tests, lie in `deploy/`: [MONITORING.md](MONITORING.md).

A name is `seawall_`, what it is about, what, and the unit where it has one; counts end in `_total`, moments
in `_timestamp_seconds`. What is 0 or 1 is named for what 1 means. A log is labelled by `topic`, `partition`
and `topic_id`: a topic that was recreated is another log. The parallel consumer is a library and has a prefix
of its own; [WORKERS.md](WORKERS.md) says more.
"""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    told = component_words()
    for component, described in groupby(inventory(), key=lambda each: each.component):
        yield f"## {component}\n"
        yield f"{told[component][:1].upper()}{told[component][1:]}.\n"
        yield from ("| metric | kind | labels | |", "|---|---|---|---|")
        for each in described:
            labels = ", ".join(f"`{label}`" for label in each.labels)
            yield f"| `{each.name}` | {each.kind} | {labels} | {each.words} |".replace("|  |", "| |")
        yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
