"""Slack's incoming webhook: a line, and blocks with the worst findings. It knows no resolve: an end is said.

Owns the words. Refuses to let a note make links or call people: `&`, `<` and `>` are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.formats.words import fitted, not_stopped, ranges, remedy
from audit_engine.alerts.message import Message, State, Stood
from rules.severities import SEVERITY_WORDS

BODY_BYTES_MAX = 40_000
SHOWN_MAX = 10  # a channel is no list of findings
SECTION_CHARS = 2900  # Slack takes 3000
EVERY_MS = 1000  # one message a second and channel

_MARK = {"C": ":red_circle:", "E": ":large_orange_circle:", "W": ":large_yellow_circle:"}


def body(endpoint: Endpoint, message: Message) -> bytes:
    mark = ":white_check_mark:" if message.state is State.ENDED else _MARK[message.severity]
    line = f"{mark} {_escaped(message.summary)}"

    def made(shown: Sequence[Stood]) -> dict[str, Any]:
        left_out = message.finding_count - len(shown)
        below = (
            f"{message.state.value}, {SEVERITY_WORDS[message.severity]}, run {message.run}, {message.thread}"
        )
        if left_out:
            below += f", {left_out} findings not shown"
        blocks = [_section(f"*{line}*"), *(_section(_finding(each)) for each in shown)]
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": below}]})
        return {"text": line, "blocks": blocks}

    most = min(endpoint.findings_max, SHOWN_MAX)
    return fitted(made, message.stood, most=most, size_bytes_max=BODY_BYTES_MAX)


def _finding(stood: Stood) -> str:
    finding = stood.finding
    state = "" if stood.is_open else f" _{stood.change}_"
    what = f"`{finding['rule_id']}` {finding['subject']} {ranges(finding)}".rstrip()
    lines = [_escaped(what) + state, _escaped(str(finding["note"]))]
    if stood.is_open:
        lines.append(f"_{_escaped(remedy(finding))}_")
        lines.append(_escaped(not_stopped(finding)))
    return "\n".join(line for line in lines if line.strip("_"))


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:SECTION_CHARS]}}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
