"""`seawall top`: what looks come to, and the screen that shows it."""

from __future__ import annotations

import asyncio
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from textual.widgets import DataTable, Static

from seawall.top.fleet import Fleet, fleet
from seawall.top.scrape import Look, scrape, scrape_all
from seawall.top.screen import Top
from tests.seawall.cli.calling import call

AGENT = """\
# TYPE seawall_log_state gauge
seawall_log_state{topic="orders",partition="0",topic_id="T",state="up_to_date"} 1
seawall_log_state{topic="orders",partition="0",topic_id="T",state="failed"} 0
seawall_log_state{topic="orders",partition="1",topic_id="T",state="failed"} 1
seawall_log_state{topic="orders",partition="2",topic_id="T",state="not_led"} 1
seawall_log_state{topic="mail",partition="0",topic_id="U",state="copying"} 1
# TYPE seawall_log_waiting_segments gauge
seawall_log_waiting_segments{topic="orders",partition="0",topic_id="T"} 0
seawall_log_waiting_segments{topic="orders",partition="1",topic_id="T"} 3
# TYPE seawall_log_waiting_bytes gauge
seawall_log_waiting_bytes{topic="orders",partition="1",topic_id="T"} 3000
# TYPE seawall_log_frontier_offset gauge
seawall_log_frontier_offset{topic="orders",partition="0",topic_id="T"} 70
# TYPE seawall_log_lag_offsets gauge
seawall_log_lag_offsets{topic="orders",partition="1",topic_id="T"} 42
# TYPE seawall_log_retention_reaches_frontier_seconds gauge
seawall_log_retention_reaches_frontier_seconds{topic="orders",partition="0",topic_id="T"} +Inf
seawall_log_retention_reaches_frontier_seconds{topic="mail",partition="0",topic_id="U"} 30
# TYPE seawall_log_retention_overtaking gauge
seawall_log_retention_overtaking{topic="mail",partition="0",topic_id="U"} 1
# TYPE seawall_log_copied_bytes_total counter
seawall_log_copied_bytes_total{topic="orders",partition="0",topic_id="T"} COPIED
# TYPE seawall_doubt gauge
seawall_doubt{doubt="catching_up"} 1
# TYPE seawall_events_pending gauge
seawall_events_pending 5
"""
AUDIT = """\
# TYPE seawall_audit_metrics_timestamp_seconds gauge
seawall_audit_metrics_timestamp_seconds 1000
# TYPE seawall_audit_worries gauge
seawall_audit_worries 0
# TYPE seawall_audit_logs gauge
seawall_audit_logs{verdict="PASS"} 9
seawall_audit_logs{verdict="VIOLATION"} 1
# TYPE seawall_audit_open_findings gauge
seawall_audit_open_findings{rule="START-02",severity="critical",is="open"} 1
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """An agent's metrics and an audit's, as files; and one that is not there."""
    (tmp_path / "agent.prom").write_text(AGENT.replace("COPIED", "100"))
    (tmp_path / "audit.prom").write_text(AUDIT)
    return [str(tmp_path / name) for name in ("agent.prom", "audit.prom", "nobody.prom")]


def test_the_worst_is_first_and_silence_before_all(files: list[str]) -> None:
    """Who does not answer; then what retention overtakes, what failed, the rest. A log that is not led
    here is another agent's to tell.
    """
    seen = fleet(scrape_all(files, timeout_s=1))

    assert [bool(each.trouble) for each in seen.places] == [True, False, False]
    assert "No such file" in seen.places[0].trouble
    assert seen.places[1].doubts == ("catching_up",)
    assert [(each.name, each.state, each.is_bad) for each in seen.logs] == [
        ("mail-0", "copying", True),
        ("orders-1", "failed", True),
        ("orders-0", "up_to_date", False),
    ]
    assert seen.audit is not None
    assert seen.audit.findings == {("START-02", "critical", "open"): 1}


def test_what_nobody_told_is_not_zero(files: list[str]) -> None:
    """No frontier, no lag, no rate from one look; an audit without a run has no age."""
    seen = fleet(scrape_all(files[:2], timeout_s=1))
    row = next(each for each in seen.logs if each.name == "mail-0")

    assert (row.frontier, row.lag_offsets, row.lag_s) == (None, None, None)
    assert [each.copied_per_s for each in seen.places] == [None, None]
    assert seen.audit is not None
    assert seen.audit.as_of_s is None
    assert fleet([scrape(files[0], timeout_s=1)]).audit is None


def test_a_rate_needs_two_looks_at_one_process() -> None:
    """Grown by 500 in 2 s; a counter that fell is of another process."""

    def look(at_s: float, copied: float) -> Look:
        labels = {"topic": "t", "partition": "0", "topic_id": "T"}
        samples = {
            "seawall_log_state": [({**labels, "state": "copying"}, 1.0)],
            "seawall_log_copied_bytes_total": [(labels, copied)],
        }
        return Look(place="a", at_s=at_s, samples=samples)

    assert fleet([look(2, 600)], [look(0, 100)]).places[0].copied_per_s == 250
    assert fleet([look(2, 50)], [look(0, 100)]).places[0].copied_per_s is None
    assert fleet([look(2, 600)], [Look(place="a", at_s=0, trouble="away")]).places[0].copied_per_s is None


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = {"/metrics": AGENT.replace("COPIED", "1"), "/other": "up 1\n", "/none": "{{{"}[self.path]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Not in the tests' output."""


def test_places_are_addresses_urls_and_files() -> None:
    """host:port means /metrics there. What is not Seawall's, not metrics or not there is said."""
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"127.0.0.1:{server.server_port}"
            looks = scrape_all(
                [address, f"http://{address}/other", f"http://{address}/none", "ftp://x/y"], timeout_s=5
            )
        finally:
            server.shutdown()
    gone = scrape(address, timeout_s=5)

    assert looks[0].one("seawall_events_pending") == 5
    assert [bool(each.trouble) for each in looks] == [False, True, True, True]
    assert looks[1].trouble == "what it says is not Seawall's"
    assert gone.trouble


def test_one_look_is_told_as_tables_and_as_json(files: list[str]) -> None:
    """4 where somebody is silent, 1 where a log wants somebody; never is null in JSON."""
    silent = call("top", "--once", *files)
    bad = call("top", "--json", *files[:2])
    told = json.loads(bad.stdout)

    assert silent.status == 4
    assert "2 of 3 answer" in silent.stdout
    assert "2 of 3 logs want somebody" in silent.stdout
    assert bad.status == 1
    assert [each["retention_in_s"] for each in told["logs"]] == [30.0, None, None]
    assert told["audit"]["findings"] == [
        {"rule": "START-02", "severity": "critical", "is": "open", "count": 1}
    ]


def test_the_screen_shows_what_was_seen_and_obeys(files: list[str]) -> None:
    """Tables filled, the worst first; b leaves the bad ones; space holds it still; q leaves."""

    def cells(app: Top, name: str) -> list[str]:
        table = app.query_one(f"#{name}-table", DataTable)
        return [str(table.get_row_at(at)[0]) for at in range(table.row_count)]

    async def play() -> tuple[list[str], list[str], str, Fleet | None]:
        looked = Event()

        def look() -> list[Look]:
            looked.set()
            return scrape_all(files, timeout_s=1)

        app = Top(look, every_s=3600)
        async with app.run_test(size=(120, 30)) as pilot:
            while app.seen is None:
                await pilot.pause(0.01)
            everything = cells(app, "logs")
            await pilot.press("b", "space")
            bad, line = cells(app, "logs"), str(app.query_one("#headline", Static).render())
            await pilot.press("q")
        return everything, bad, line, app.seen

    everything, bad, line, seen = asyncio.run(play())

    assert everything == ["mail-0", "orders-1", "orders-0"]
    assert bad == ["mail-0", "orders-1"]
    assert "held still" in line
    assert "1 critical" in line
    assert seen is not None


def test_a_look_that_hangs_does_not_freeze_the_screen() -> None:
    """It says that it is looking, and leaves when it is told to."""

    async def play() -> str:
        go_on = Event()

        def look() -> list[Look]:
            go_on.wait(30)
            return []

        app = Top(look, every_s=3600)
        async with app.run_test() as pilot:
            await pilot.pause()
            line = str(app.query_one("#headline", Static).render())
            go_on.set()
            await pilot.press("q")
        return line

    assert asyncio.run(play()) == "looking ..."
