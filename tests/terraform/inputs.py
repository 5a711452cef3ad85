"""The inputs and outputs of the modules, read from their files, as tables of docs/TERRAFORM.md.

`python -m tests.terraform.inputs` writes them between the page's marks. Reads the form that `terraform fmt`
gives, which a test holds the files to, and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "terraform"
PAGE = Path(__file__).parents[2] / "docs" / "TERRAFORM.md"
BEGIN, END = "<!-- from the code: {name} -->", "<!-- end -->"
_BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """`default` None: it has to be given."""

    name: str
    description: str
    type: str = ""
    default: str | None = None


def said(folder: Path) -> tuple[list[Said], list[Said]]:
    """A module's inputs and outputs, in the order of its files."""
    inputs, outputs = [], []
    for file in ("variables.tf", "outputs.tf"):
        for sort, name, body in _BLOCK.findall((folder / file).read_text(encoding="utf-8")):
            description = re.search(r'^  description = "(.*)"$', body, re.MULTILINE)
            text = description.group(1) if description else ""
            if sort == "output":
                outputs.append(Said(name=name, description=text))
            else:
                inputs.append(
                    Said(
                        name=name,
                        description=text,
                        type=_value(body, "type") or "",
                        default=_value(body, "default"),
                    )
                )
    return inputs, outputs


def _value(body: str, name: str) -> str | None:
    """What an attribute is set to, on one line."""
    lines = body.splitlines()
    for at, line in enumerate(lines):
        found = re.match(rf"^  {name}\s+= (.*)$", line)
        if found is None:
            continue
        value = [found.group(1)]
        if value[0].endswith(("{", "(", "[", "({")):
            for more in lines[at + 1 :]:
                value.append(more.strip())
                if re.match(r"^  [\]\})]+$", more):
                    break
        return re.sub(r"\s+", " ", " ".join(value))
    return None


def page(text: str) -> str:
    """The page with every table made anew."""
    for name in re.findall(r"<!-- from the code: (\S+) -->", text):
        begin = BEGIN.format(name=name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(END)
        tables = "\n".join(_tables(FOLDER / name))
        text = f"{before}{begin}\n{tables}\n{END}{after}"
    return text


def _tables(folder: Path) -> Iterator[str]:
    inputs, outputs = said(folder)
    yield "| input | type | default | |"
    yield "|---|---|---|---|"
    for each in inputs:
        default = "required" if each.default is None else f"`{_cell(each.default)}`"
        yield f"| `{each.name}` | `{_cell(each.type)}` | {default} | {_cell(each.description)} |"
    yield ""
    yield "| output | |"
    yield "|---|---|"
    for each in outputs:
        yield f"| `{each.name}` | {_cell(each.description)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
