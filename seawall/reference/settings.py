"""docs/SETTINGS.md: every setting with its default and its variable, from the model.

python -m seawall.reference.settings > docs/SETTINGS.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from seawall.settings.model import Settings
from seawall.settings.names import ENVIRONMENT_ONLY, variable

_HEAD = """\
# Settings

Made from the model by `python -m seawall.reference.settings > docs/SETTINGS.md`; a test compares them.
Flags stand above `SEAWALL_*` variables, those above `seawall.toml`; `seawall settings` shows each value and
where it came from. A key that is not here is refused, with the nearest that is. Sizes are numbers of bytes or
texts such as `"20GiB"`; in a variable, a list is words with commas between.
"""
_PAGES: Mapping[str, str] = {
    "kafka": "Any property of librdkafka may stand under `[kafka.client]`; secrets belong in variables.",
    "s3": "Credentials are boto3's own chain.",
    "agent": "What each does: [AGENT.md](AGENT.md).",
    "audit": "What each does: [INGEST.md](INGEST.md), [AUDIT.md](AUDIT.md).",
    "alerts": "What each does, and an endpoint's own keys: [ALERTS.md](ALERTS.md).",
    "scaler": "What each does: [SCALER.md](SCALER.md).",
    "serve": "What each does: [SERVING.md](SERVING.md).",
}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for table, field in Settings.model_fields.items():
        kind: Any = field.annotation
        assert issubclass(kind, BaseModel)
        yield f"## [{table}]\n"
        words = inspect.cleandoc(kind.__doc__ or "").removeprefix(f"[{table}]: ")
        yield f"{words[:1].upper()}{words[1:]}" + (f" {_PAGES[table]}" if table in _PAGES else "") + "\n"
        yield from ("| key | default | variable |", "|---|---|---|")
        for name, each in kind.model_fields.items():
            default = each.get_default(call_default_factory=True)
            yield f"| `{name}` | {_shown(default)} | `{variable(f'{table}.{name}')}` |"
        yield ""
    yield "## Only in the environment\n"
    yield from ("| variable | |", "|---|---|")
    yield from (f"| `{name}` | {words} |" for name, words in ENVIRONMENT_ONLY.items())


def _shown(default: Any) -> str:
    if default is None or default is PydanticUndefined or default in ((), {}):
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
