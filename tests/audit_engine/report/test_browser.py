"""The page as people meet it, in a headless Chromium: light, dark and narrow, by keyboard, on paper.

Screenshots go to the folder that SEAWALL_TEST_SCREENSHOTS names, to be looked at. Nothing is compared by
pixel, and no time is a failure; how long a page takes until it can be used is printed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from audit_engine.report.page import page
from audit_engine.report.values import Gathered
from tests.audit_engine.report.chromium import Chromium, Page, installed
from tests.audit_engine.report.fleets import (
    ALL,
    fault,
    gathered,
    hostile,
    many,
    of_faults,
    one_incident,
    zoomed,
)

pytestmark = pytest.mark.slow
SHAPES = {
    "light": (1200, False),
    "dark": (1200, True),
    "tablet": (850, False),
    "narrow": (360, False),
    "narrow-dark": (360, True),
}
SAID = {
    "empty": ("Indeterminate", "Nothing was judged", "volume: 0 events", "No log was judged"),
    "healthy": ("Pass", "All 48 logs were judged on complete evidence", "No log's verdict and no finding"),
    "incident": ("Violation", "3 logs cannot be told", "3,000 offsets with no known copy", "new in this run"),
    "many": ("Violation", "141 of 10,000 logs violate", "116 more incidents", "239 logs cannot be told"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    binary = installed()
    if binary is None:
        pytest.skip("there is no Chromium: on Debian, apt-get install chromium")
    with Chromium(binary) as started:
        yield started


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("SEAWALL_TEST_SCREENSHOTS")
    return Path(kept) if kept else tmp_path_factory.mktemp("screenshots")


def written(folder: Path, run: Gathered) -> Path:
    file = folder / "report.html"
    file.write_text(page(run), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ALL)
def test_a_page_is_readable_in_every_shape(
    name: str, browser: Chromium, screenshots: Path, tmp_path: Path
) -> None:
    """Nothing runs off the page or lies on something else, every text has the contrast of WCAG AA, headings
    and names are sound, the console is silent, and nothing was asked for but the file."""
    with browser.page(written(tmp_path, ALL[name]())) as opened:
        ready_ms = opened.evaluate("document.documentElement.dataset.readyMs")
        sys.stdout.write(f"{name}: can be used after {ready_ms} ms\n")
        text = opened.evaluate("document.body.innerText")
        for words in SAID[name]:
            assert words in text
        assert opened.evaluate("looks.unsound()") == []
        for shape, (width, is_dark) in SHAPES.items():
            opened.shape(width=width, is_dark=is_dark)
            is_judged(opened, f"{name} {shape}")
            assert len(opened.screenshot(screenshots / f"{name}-{shape}.png")) > 20_000
        assert opened.complaints == []


def is_judged(opened: Page, where: str) -> None:
    assert opened.evaluate("looks.overflowing()") == [], where
    assert opened.evaluate("looks.squeezed()") == [], where
    assert opened.evaluate("looks.overlapping()") == [], where
    assert opened.evaluate("looks.faint()") == [], where
    contrast = opened.evaluate("looks.pale()")
    assert contrast["found"] == [], where
    assert contrast["looked"] > 50
    assert opened.evaluate("looks.labels()") > 1


def test_every_fault_has_a_picture_without_labels_on_labels(browser: Chromium, tmp_path: Path) -> None:
    """The pictures of all sorts of faults, a log of millions of offsets among them, wide and narrow."""
    runs = {
        **{f"{number} {mode}": one_incident(fault(number, mode)) for number, mode in PICTURED},
        "zoomed": zoomed(),
    }
    for name, run in runs.items():
        with browser.page(written(tmp_path, run)) as opened:
            assert opened.evaluate("document.querySelectorAll('figure svg').length") >= 2, name
            for width in (1200, 360):
                opened.shape(width=width)
                assert opened.evaluate("looks.overlapping()") == [], (name, width)
                assert opened.evaluate("looks.overflowing()") == [], (name, width)


PICTURED = ((1, "none"), (7, "kip405"), (10, "kip405"), (13, "ours"), (16, "none"))


def test_what_was_read_from_a_table_cannot_run_or_hide(browser: Chromium, tmp_path: Path) -> None:
    """Topics, notes and reasons that would close the script, open an image, or turn the text around: all are
    shown as they are spelled, in the page and in the table, and nothing of them runs."""
    with browser.page(written(tmp_path, hostile())) as opened:
        opened.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        opened.evaluate("document.querySelectorAll('td.name button').forEach((each) => each.click())")
        text = opened.evaluate("document.body.innerText")
        made = opened.evaluate("document.querySelectorAll('img, iframe, object, embed, form').length")
        scripts = opened.evaluate("document.scripts.length")
        is_judged(opened, "hostile")
        complaints = opened.complaints

    assert (made, scripts, complaints) == (0, 2, [])
    assert "</script><script>document.title='run'</script>" in text
    assert "<img src=x onerror=alert(1)>" in text
    assert "\\u{202e}" in text
    assert "\u202e" not in text
    assert "'$(touch /tmp/run);" in text


def test_the_keyboard_reaches_everything(browser: Chromium, tmp_path: Path) -> None:
    """The skip link is first and goes to the verdict; each stop on the way is seen and outlined; / is the
    search; arrows go from log to log and over a page's end; Enter unfolds; sorting and filters obey."""
    with browser.page(written(tmp_path, many(700))) as opened:
        opened.press("Tab")
        assert opened.evaluate("looks.focus()")["text"] == "Skip to the verdict"
        assert opened.evaluate("looks.focus()")["isSeen"]
        opened.press("Enter")
        assert opened.evaluate("document.activeElement.id") == "main"
        stops = []
        for _ in range(30):
            opened.press("Tab")
            stops.append(opened.evaluate("looks.focus()"))
        assert all(each["outline"] >= 2 and each["isSeen"] for each in stops), stops
        assert {"A", "SUMMARY", "BUTTON"} <= {each["tag"] for each in stops}
        folded = "document.querySelectorAll('details.incident:not([open])').length"
        before = opened.evaluate(folded)
        opened.evaluate("document.querySelector('details.incident:not([open]) > summary').focus()")
        opened.press("Enter")
        assert opened.evaluate(folded) == before - 1

        opened.press("/")
        assert opened.evaluate("document.activeElement.id") == "search"
        opened.type("region-001 silent")
        assert rows(opened) == 50
        assert opened.evaluate("document.getElementById('found').textContent").startswith("50 of ")
        opened.press("Tab")
        opened.press(" ")  # no violations
        opened.evaluate("document.querySelector('td.name button').focus()")
        opened.press("ArrowDown")
        second = opened.evaluate("document.querySelectorAll('td.name button')[1] === document.activeElement")
        assert second
        opened.press("Enter")
        assert opened.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
        assert "seawall audit statement" in opened.evaluate("document.querySelector('tr.more').innerText")

        opened.evaluate(
            "const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))"
        )
        opened.evaluate("document.querySelector('td.name button').focus()")
        opened.press("End")
        opened.press("ArrowDown")
        assert opened.evaluate("document.getElementById('place').textContent").startswith("51 to 100")
        opened.press("ArrowUp")
        assert opened.evaluate("document.getElementById('place').textContent").startswith("1 to 50")
        opened.evaluate("document.querySelector('th.end button').focus()")
        opened.press("Enter")
        assert opened.evaluate("document.querySelector('th.end').getAttribute('aria-sort')") == "descending"
        shown = opened.evaluate("[...document.querySelectorAll('td.end')].map((each) => each.textContent)")
        amounts = [int(each.replace(",", "")) for each in shown]
        assert amounts == sorted(amounts, reverse=True)
        assert opened.complaints == []


def rows(opened: Page) -> int:
    return int(opened.evaluate("document.querySelectorAll('#rows tr').length"))


def test_a_verdicts_number_leads_to_its_logs(browser: Chromium, tmp_path: Path) -> None:
    """Who asks for what cannot be told sees those logs alone, and their reasons."""
    with browser.page(written(tmp_path, one_incident())) as opened:
        opened.evaluate("document.querySelector('.counts .indeterminate a').click()")
        shown = opened.evaluate("[...document.querySelectorAll('#rows tr')].map((each) => each.innerText)")

    assert len(shown) == 3
    assert all("Indeterminate" in each and "nobody watches the disk" in each for each in shown)


def test_light_and_dark_can_be_chosen(browser: Chromium, tmp_path: Path) -> None:
    """As the system has it; the button turns it around, and says what it will do."""
    colour = "getComputedStyle(document.body).backgroundColor"
    with browser.page(written(tmp_path, ALL["healthy"]()), is_dark=True) as opened:
        dark = opened.evaluate(colour)
        label = opened.evaluate("document.getElementById('theme').getAttribute('aria-label')")
        opened.evaluate("document.getElementById('theme').click()")
        light = opened.evaluate(colour)
        opened.shape(width=1200, is_dark=False)

        assert label == "Show this page light"
        assert light != dark
        assert opened.evaluate(colour) == light


def test_a_page_says_how_old_it_is(browser: Chromium, tmp_path: Path) -> None:
    """Yesterday's page must not look like today's: it says so above all else; a fresh one does not."""
    now_ms = int(time.time() * 1000)
    old, fresh = (with_moment(ALL["healthy"](), now_ms - hours * 3_600_000) for hours in (49, 3))
    shown = (
        "document.getElementById('stale').checkVisibility() && document.getElementById('stale').textContent"
    )
    with browser.page(written(tmp_path, old)) as opened:
        assert "This page is 49 hours old" in opened.evaluate(shown)
    with browser.page(written(tmp_path, fresh)) as opened:
        assert opened.evaluate(shown) is False


def with_moment(run: Gathered, as_of_ms: int) -> Gathered:
    return replace(run, runs=[*run.runs[:-1], {**run.run, "as_of_ms": as_of_ms}])


def test_it_can_be_printed(browser: Chromium, tmp_path: Path) -> None:
    """On paper there are no buttons, everything is unfolded, and the colours are those of the light page."""
    with browser.page(written(tmp_path, many(700)), is_dark=True) as opened:
        pdf = opened.printed()
        opened.evaluate("dispatchEvent(new Event('beforeprint'))")
        folded = opened.evaluate("document.querySelectorAll('details.incident:not([open])').length")
        opened.shape(width=800, is_dark=True, media="print")
        buttons = "[...document.querySelectorAll('.tools, .pages button, #theme')]"
        seen = opened.evaluate(f"{buttons}.some((each) => each.checkVisibility())")
        ink = opened.evaluate("getComputedStyle(document.body).color")

    assert pdf.startswith(b"%PDF")
    assert (folded, seen, ink) == (0, False, "rgb(0, 0, 0)")


def test_paper_shows_every_log_that_does_not_pass(browser: Chromium, tmp_path: Path) -> None:
    """Whatever is searched for on the screen; with all reasons, suppressed findings too; then as before."""
    with browser.page(written(tmp_path, many(700))) as opened:
        search = "const s = document.getElementById('search'); s.value = 'region-001';"
        opened.evaluate(f"{search} s.dispatchEvent(new Event('input'))")
        before = rows(opened)
        opened.evaluate("dispatchEvent(new Event('beforeprint'))")
        printed = opened.evaluate("document.querySelectorAll('#rows .word:not(.pass)').length")
        said = opened.evaluate("document.getElementById('found').textContent")
        folded = opened.evaluate("document.querySelectorAll('details.fold:not([open])').length")
        more = opened.evaluate("document.getElementById('rows').textContent.includes(' more')")
        opened.evaluate("dispatchEvent(new Event('afterprint'))")
        after = rows(opened)

    assert printed > before
    assert said.startswith(f"{printed} of 700 logs do not pass")
    assert (folded, more, after) == (0, False, before)


def test_emptied_findings_leave_no_incident(browser: Chromium, tmp_path: Path) -> None:
    """What was resolved is no incident, and a run of one log says so in the singular."""
    statements, findings, states = of_faults(fault(9, "none"))
    run = gathered(statements, findings=findings, states=states, before=statements)
    with browser.page(written(tmp_path, run)) as opened:
        text = opened.evaluate("document.body.innerText")

    assert "The only log was judged" in text
    assert "None is open." in text
    assert "1\nfinding resolved" in text
