"""A plan's file: it reads back as it was, and no edit of it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backup.errors import PlanEdited, PlanUnusable
from backup.plan import Lost, LostBecause, Range
from backup.plan.codec import body_of, members_of
from backup.plan.file import plan_of_text, read_plan, text_of, write_plan
from backup.plan.render import days, lines_of
from tests.backup.plans import body, piece, plan


def test_a_plan_reads_back_equal(tmp_path: Path) -> None:
    """Body, hash and all; nothing else is left in the folder."""
    written = plan()
    write_plan(tmp_path / "p.json", written)

    assert read_plan(tmp_path / "p.json") == written
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_a_plan_is_not_written_over_a_file(tmp_path: Path) -> None:
    """Whoever approved the one that is there approved that one."""
    path = tmp_path / "p.json"
    path.write_text("something")

    with pytest.raises(FileExistsError):
        write_plan(path, plan())
    assert path.read_text() == "something"


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*at, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*at, place))
    else:
        yield at


def _changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return "edited" if value is None else f"{value}x"


def test_no_value_can_be_edited() -> None:
    """Each one that stands in the file, changed alone, is refused, and so is each that is taken away."""
    members = json.loads(text_of(plan()))
    for *way, last in _leaves(members):
        for edit in ("change", "remove"):
            edited = json.loads(json.dumps(members))
            place = edited
            for name in way:
                place = place[name]
            if edit == "remove":
                del place[last]
            else:
                place[last] = _changed(place[last])
            with pytest.raises(PlanUnusable):
                plan_of_text(json.dumps(edited).encode(), "p.json")


def test_an_edit_says_so() -> None:
    """An offset changed in the body, or in a line for people alone, is an edit by name."""
    members = json.loads(text_of(plan()))
    members["body"]["keep_for_ms"] += 1
    with pytest.raises(PlanEdited, match="its hash is"):
        plan_of_text(json.dumps(members).encode(), "p.json")

    members = json.loads(text_of(plan()))
    members["reads"][0] = members["reads"][0].replace("[5,", "[0,")
    with pytest.raises(PlanEdited, match="its lines"):
        plan_of_text(json.dumps(members).encode(), "p.json")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"seawall_plan": 1, "reads": [], "body": {}}']
)
def test_what_is_no_plan_is_refused(content: bytes) -> None:
    """With the file's name, and not as a defect."""
    with pytest.raises(PlanUnusable, match=r"p\.json"):
        plan_of_text(content, "p.json")


def test_a_body_is_its_members() -> None:
    """Through JSON and back, also where a plan has no gaps and one piece."""
    for each in (
        body(),
        body(
            lost=(),
            asked=body().asked.__class__(by=body().asked.by, text="5:10", range=Range(5, 10)),
            range=Range(5, 10),
            joins_at=10,
            pieces=(piece(1, 5, 10),),
            details={},
        ),
    ):
        assert body_of(json.loads(json.dumps(members_of(each)))) == each


def test_what_does_not_hold_is_named() -> None:
    """Pieces that leave something out, overlap, or are not what the plan's range says."""
    assert body().problem() is None
    assert body(pieces=()).problem() == "it has no pieces"
    assert "follow" in str(body(lost=()).problem())
    assert "range" in str(body(range=Range(0, 30)).problem())
    far = Lost(start=30, end=31, because=LostBecause.NEVER_COPIED, detail="")
    assert "[0, 30)" in str(body(lost=(*body().lost, far)).problem())


def test_the_lines_say_what_counts() -> None:
    """Range, counts, cost, each gap with its reason, each version."""
    said = "\n".join(lines_of(plan()))

    assert "restore [5, 30) of orders-3 to target tier" in said
    assert "15 offsets can be had back, 15 are lost; 2 segments" in said
    assert "lost  [10, 20)  version_gone: expired" in said
    assert "1 gaps are put on record and passed" in said
    assert "version v1-log" in said
    assert [days(ms) for ms in (86_400_000, 5_400_000, 60_000, 500)] == ["1 d", "1.5 h", "1 min", "0.5 s"]


def test_a_long_plan_is_read_by_its_sums() -> None:
    """Of a thousand pieces twenty are shown, and how many more there are."""
    pieces = tuple(piece(number, number, number + 1) for number in range(1000))
    asked = body().asked.__class__(by=body().asked.by, text="0:1000", range=Range(0, 1000))
    long = plan(pieces=pieces, lost=(), asked=asked, range=Range(0, 1000), joins_at=1000)

    assert "piece and 980 more" in lines_of(long)
    assert len(lines_of(long)) < 40


KEY = b"k" * 32


def test_who_has_the_key_takes_no_other_plan() -> None:
    """Signed it reads back; unsigned, by another key, or with a signature of another plan it is refused."""
    signed = text_of(plan(), KEY)
    other = text_of(plan(topic="payroll"), b"o" * 32)

    assert plan_of_text(signed.encode(), "p.json", KEY) == plan()
    for refused, why in (
        (text_of(plan()), "not signed"),
        (other, "not by this key"),
        (json.dumps(json.loads(other) | {"signature": json.loads(signed)["signature"]}), "not by this key"),
        (json.dumps(json.loads(signed) | {"signature": None}), "not by this key"),
    ):
        with pytest.raises(PlanEdited, match=why):
            plan_of_text(refused.encode(), "p.json", KEY)


def test_a_signed_plan_is_one_to_who_has_no_key() -> None:
    """The hash is held as ever; the signature is not asked for."""
    assert plan_of_text(text_of(plan(), KEY).encode(), "p.json") == plan()
