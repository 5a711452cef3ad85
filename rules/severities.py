"""How bad a finding is: the letter that is stored, and the word that people read and write."""

from __future__ import annotations

from collections.abc import Mapping

SEVERITY_WORDS: Mapping[str, str] = {"C": "critical", "E": "error", "W": "warning"}
SEVERITY_LETTERS: dict[str, str] = {word: letter for letter, word in SEVERITY_WORDS.items()}
GRAVEST_FIRST = tuple(SEVERITY_WORDS)
