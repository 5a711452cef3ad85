"""What lives by a log of ours is a function of the log: no clock, no chance, no order by luck.

The modules of EXECUTORS are what `seawall replay` runs again. In them nothing may be imported that asks the
time or draws a number, nothing may be called that does (`hash` and `id` too, which differ between processes),
and what goes through a set must put it in order first. It is a test of spelling: it sees a set where it is
made, where its name is annotated or assigned as one, and between `keys()`; not one of another module.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXECUTORS = (
    # segments: the topic of metadata into the reference table
    "tiering/segments/bulk_fold.py",
    "tiering/segments/codec.py",
    "tiering/segments/coverage.py",
    "tiering/segments/digest.py",
    "tiering/segments/findings.py",
    "tiering/segments/frontier.py",
    "tiering/segments/invariants.py",
    "tiering/segments/json_fields.py",
    "tiering/segments/keys.py",
    "tiering/segments/lifecycle.py",
    "tiering/segments/lineage.py",
    "tiering/segments/log_fold.py",
    "tiering/segments/logs.py",
    "tiering/segments/proof.py",
    "tiering/segments/records.py",
    "tiering/segments/rows.py",
    "tiering/segments/segment_fold.py",
    "tiering/segments/state.py",
    "tiering/segments/table.py",
    "tiering/segments/values.py",
    "tiering/segments/view.py",
    # ingest: the topic of events into rows
    "audit_engine/ingest/position.py",
    "audit_engine/ingest/rows",
    "audit_engine/tables/columns.py",
    "audit_engine/tables/marks.py",
    "audit_engine/wire",
    "seawall/replay/ingest/against.py",
    # audit: evidence into state, findings and statements
    "rules/machine",
    "audit_engine/run/cut.py",
    "audit_engine/run/decisions",
    "audit_engine/run/doubts",
    "audit_engine/run/evidence",
    "audit_engine/run/fleet.py",
    "audit_engine/run/folding",
    "audit_engine/run/groups",
    "audit_engine/run/kept",
    "audit_engine/run/listening",
    "audit_engine/run/one_emitter.py",
    "audit_engine/run/one_log.py",
    "audit_engine/run/outcomes.py",
    "audit_engine/run/screen",
    "audit_engine/run/spent",
    "audit_engine/run/told.py",
    # outbox: news into messages
    "audit_engine/alerts/threads.py",
    "audit_engine/alerts/message.py",
    "audit_engine/alerts/news.py",
    "audit_engine/alerts/proof.py",
    "workers/proof.py",
    # policy: the topic of declared changes into what is in force. Its `kafka` reads, and is no part of that
    "rules/policy",
    "seawall/policy/change_log/__init__.py",
    # restore to topic: its own topic of progress into where to go on
    "backup/topic/progress.py",
    # shared scrub: tasks and answers, and which of them count. What a look comes to is the bucket's
    "tiering/scrub/shared/board.py",
    "tiering/scrub/shared/words.py",
    # scaler: the log that scalers share into the word on each group
    "workers/scaler/chain.py",
    "workers/scaler/codec.py",
    "workers/scaler/evaluate.py",
    "workers/scaler/measure.py",
    "workers/scaler/options.py",
    "workers/scaler/remember.py",
    "workers/scaler/replay.py",
    "workers/scaler/replicas.py",
    "workers/scaler/triage.py",
    "workers/scaler/values.py",
    "workers/scaler/window.py",
)
MODULES = frozenset({"time", "random", "secrets", "uuid", "socket", "os", "asyncio", "tempfile"})
CALLS = frozenset({"hash", "id", "now", "utcnow", "today", "urandom", "uuid4", "uuid1", "getrandbits"})
# These take a set and come to the same whatever its order is.
IN_ANY_ORDER = frozenset({"sorted", "len", "sum", "min", "max", "any", "all", "set", "frozenset", "bool"})
IN_ITS_ORDER = frozenset(
    {"list", "tuple", "iter", "enumerate", "next", "map", "filter", "zip", "dict", "join"}
)
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})


def _files() -> list[Path]:
    found = [ROOT / name for name in EXECUTORS]
    return sorted(file for each in found for file in (each.rglob("*.py") if each.is_dir() else [each]))


def unsteady(source: str) -> list[str]:
    """What in a module may differ between two runs of it, each with its line."""
    tree = ast.parse(source)
    sets = _names_of_sets(tree)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [f"{node.lineno}: imports {name}" for name in _imported(node) if name in MODULES]
        elif isinstance(node, ast.Call) and (why := _wrong_call(node, sets)):
            found.append(f"{node.lineno}: {why}")
        elif _goes_through_set(node, sets, parents):
            found.append(f"{getattr(node, 'lineno', 0)}: goes through a set")
    return found


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
    return [each.partition(".")[0] for each in names]


def _wrong_call(node: ast.Call, sets: frozenset[str]) -> str | None:
    name = _called(node)
    if name in CALLS:
        return f"calls {name}"
    if name in IN_ITS_ORDER and any(_is_set(each, sets) for each in node.args):
        return f"{name} of a set"
    is_pop = name == "pop" and isinstance(node.func, ast.Attribute) and not node.args
    return "pops from a set" if is_pop and _is_set(node.func.value, sets) else None  # type: ignore[attr-defined]


def _goes_through_set(node: ast.AST, sets: frozenset[str], parents: dict[ast.AST, ast.AST]) -> bool:
    if isinstance(node, ast.For):
        return _is_set(node.iter, sets)
    if isinstance(node, ast.Starred):
        return _is_set(node.value, sets) and not isinstance(parents[node], ast.Set)
    if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        return any(_is_set(each.iter, sets) for each in node.generators) and not _is_ordered(node, parents)
    return False


def _is_ordered(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    """It is put in order, or comes to the same in any."""
    around = parents.get(node)
    return isinstance(around, ast.Call) and _called(around) in IN_ANY_ORDER


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_set(node: ast.expr | None, sets: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in sets
    if isinstance(node, ast.Attribute):
        return f".{node.attr}" in sets
    if isinstance(node, ast.Call):
        return _called(node) in {"set", "frozenset"} or (
            _called(node) in SET_METHODS
            and isinstance(node.func, ast.Attribute)
            and _is_set(node.func.value, sets)
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.BitAnd | ast.BitOr | ast.BitXor):
        return any(_is_set(each, sets) or _is_keys(each) for each in (node.left, node.right))
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _called(node) == "keys"


def _names_of_sets(tree: ast.AST) -> frozenset[str]:
    """Names that are annotated or assigned as a set in the module; an attribute's has a dot before it."""
    found: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg):
            target = node.target if isinstance(node, ast.AnnAssign) else node
            name = target.arg if isinstance(target, ast.arg) else _name(target)
            (found if _is_set_hint(node.annotation) else others).add(name)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            (found if _is_set(node.value, frozenset()) else others).add(_name(node.targets[0]))
    return frozenset(found - others) - {""}


def _name(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute):
        return f".{target.attr}"
    return target.id if isinstance(target, ast.Name) else ""


def _is_set_hint(hint: ast.expr | None) -> bool:
    outer = hint.value if isinstance(hint, ast.Subscript) else hint
    return isinstance(outer, ast.Name) and outer.id in {"set", "frozenset", "Set", "AbstractSet"}


@pytest.mark.parametrize("file", _files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_an_executor_is_a_function_of_its_log(file: Path) -> None:
    """Nothing in it asks the time, draws a number, or goes by the order in which a set lies in memory."""
    assert unsteady(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import choice",
        "import os.path",
        "at = datetime.now()",
        "key = hash(name)",
        "for each in {1, 2}: pass",
        "found = [each for each in set(names)]",
        "found = ', '.join({'a', 'b'})",
        "found = list(a.keys() - b.keys())",
        "def f(names: frozenset[str]) -> None:\n    for each in names: pass",
        "names = {1, 2}\nfirst = next(iter(names))",
        "names: set[int] = set()\nlast = names.pop()",
        "self.names = set()\nfound = tuple(self.names)",
        "f(*{1, 2})",
    ],
)
def test_what_may_differ_is_seen(source: str) -> None:
    """Each of the ways that the test above is there for."""
    assert unsteady(source) != []


@pytest.mark.parametrize(
    "source",
    [
        "for each in sorted({1, 2}): pass",
        "found = sorted(each for each in set(names))",
        "count = sum(each.size for each in {a, b})",
        "is_there = any(each in other for each in a.keys() & b.keys())",
        "both = {*names, *others}",
        "found = {each.name for each in {a, b}}",
        "for each in ordered: pass",
        "last = stack.pop()",
    ],
)
def test_what_comes_to_the_same_in_any_order_is_let_be(source: str) -> None:
    """A set may be made, asked, counted and sorted."""
    assert unsteady(source) == []
