"""Samples that were kept are judged as they would have been, and drawn."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.workers.scaler.seen import Seen, options
from workers.scaler.codec import NotReadable, to_json
from workers.scaler.picture import LETTERS, ROWS, WIDTH, as_svg, in_columns
from workers.scaler.replay import Judged, options_of, read_samples, replay
from workers.scaler.values import Sample, Verdict

OPTIONS = options(balanced="none", allow_idle_consumers=True, max_replicas=8)


def seen_samples() -> tuple[list[Sample], Seen]:
    seen = Seen(OPTIONS)
    samples = []
    for lag in [10] * 10 + [700] * 30 + [300] * 10 + [10] * 60:
        seen.lags([lag])
        assert seen.window.last is not None
        samples.append(seen.window.last)
    return samples, seen


def test_a_replay_says_what_was_said() -> None:
    """A file of samples, read and judged again: the same words."""
    samples, seen = seen_samples()
    lines = [json.dumps(to_json(sample)) for sample in samples]

    kept = read_samples([json.dumps({"scalerMetadata": {"lagThreshold": "500"}}), "", *lines])
    judged = replay(OPTIONS, kept.samples)

    assert [each.word for each in judged] == seen.words
    assert options_of(kept, {"sustainSeconds": "60"}).lag_threshold == 500


def test_a_sample_that_comes_twice_is_judged_once() -> None:
    """What is not after the last adds nothing."""
    samples, seen = seen_samples()

    judged = replay(OPTIONS, [each for sample in samples for each in (sample, sample)])

    assert [each.word for each in judged] == seen.words


@pytest.mark.parametrize("line", ["{", "5", '{"at_s": 1}', '{"sample": {}}', '{"scalerMetadata": 5}'])
def test_what_is_no_sample_is_refused_by_its_line(line: str) -> None:
    """Never judged without."""
    with pytest.raises(NotReadable, match="line 2"):
        read_samples(["", line])


def test_the_picture_has_every_verdict_under_its_lag() -> None:
    """Columns of one width; both thresholds are marked; what moved stands under its moment."""
    samples, _ = seen_samples()
    judged = replay(OPTIONS, samples)

    lines = in_columns(judged, OPTIONS)

    assert "lagThreshold" in "".join(lines[:ROWS])
    assert "lagThresholdExit" in "".join(lines[:ROWS])
    verdicts, moves = lines[ROWS], lines[ROWS + 2]
    assert {LETTERS[each] for each in (Verdict.UNKNOWN, Verdict.PERSISTENT, Verdict.LOW)} <= set(verdicts)
    assert "+" in moves
    assert len({line.rfind("|") for line in lines[:ROWS] if "lag" not in line}) == 1
    assert max(len(line) for line in lines[ROWS : ROWS + 3]) < WIDTH + 20


def test_the_svg_is_one_picture_that_fetches_nothing() -> None:
    """Well-formed, with the reason of each moment as its title, and names escaped."""
    samples, _ = seen_samples()

    text = as_svg(replay(OPTIONS, samples), OPTIONS, title="<a&b>")
    root = ElementTree.fromstring(text)

    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "<a&b>"
    assert any("persistent: lag 700" in title for title in titles)
    assert "href" not in text
    assert "<script" not in text


def test_nothing_can_be_drawn_of_nothing() -> None:
    """No samples is a picture of none, not an error."""
    empty: list[Judged] = []

    assert in_columns(empty, OPTIONS) == ["no samples"]
    assert ElementTree.fromstring(as_svg(empty, OPTIONS, title="t")).tag.endswith("svg")
