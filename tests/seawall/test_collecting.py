"""The collector rests while modules come, and is at work again behind them."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import pytest

from seawall import collecting


def test_it_rests_while_modules_come_and_leaves_them_alone() -> None:
    """And only if one came is what is there set aside: the collector knows it no more."""
    sys.modules.pop("colorsys", None)
    there = ["something that the collector looks at"]
    with collecting.imports():
        assert not gc.isenabled()
    before = _is_looked_at(there)
    with collecting.imports():
        import_module("colorsys")

    assert before
    assert not _is_looked_at(there)
    assert gc.isenabled()


def test_it_is_at_work_again_when_an_import_fails() -> None:
    """A package that is not installed is told by the verb, later."""
    with pytest.raises(ModuleNotFoundError), collecting.imports():
        import_module("seawall.no_such_module")

    assert gc.isenabled()


def test_whoever_had_it_off_has_it_off() -> None:
    """As Python's own options do."""
    gc.disable()
    try:
        with collecting.imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def _is_looked_at(thing: object) -> bool:
    return any(each is thing for each in gc.get_objects())
