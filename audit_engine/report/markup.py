"""HTML and SVG that nothing breaks out of: text is escaped because it is text, not because one thought of it.

    tag("td", topic, class_="name")    a str is escaped; a Markup is taken as it is
    shown(text)                        control and direction-changing characters become visible
    embedded(value)                    JSON for a <script> element, without any character HTML could act on

Owns escaping. Invariant: only this module makes a Markup from a str.
"""

from __future__ import annotations

import json
import unicodedata
from html import escape
from typing import Any, TypeAlias

Value: TypeAlias = "str | int | float | bool | None"
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
# Characters of these categories can hide text, or show it in another order than it has.
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: Value) -> Markup:
    """`class_` is class, `aria_label` aria-label; True is a bare attribute, None and False are none."""
    inside = "".join(_written(each) for each in children if each is not None)
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(opened if name in _VOID else f"{opened}{inside}</{name}>")


def joined(*parts: str | None) -> Markup:
    return Markup("".join(_written(each) for each in parts if each is not None))


def shown(text: str) -> str:
    """As people can see it: what is invisible, or turns the text around, is spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(each):x}}}" if _is_unseen(each) else each for each in text)


def prose(text: str) -> Markup:
    """Words in which what stands between backticks is code."""
    parts = text.split("`")
    return joined(*(tag("code", each) if at % 2 else each for at, each in enumerate(parts)))


def embedded(value: Any) -> Markup:
    """For `<script type="application/json">`: no character that ends the element, or a line of JavaScript."""
    return Markup(
        json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        .replace("&", "\\u0026")
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
    )


def trusted(text: str) -> Markup:
    """Our own files: the style, the script, the template's parts. Never for what was read from a table."""
    return Markup(text)


def _written(child: str) -> str:
    return child if isinstance(child, Markup) else escape(shown(child), quote=False)


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(shown(str(value)), quote=True)}"'


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
