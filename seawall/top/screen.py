"""The fleet on a terminal, looked at anew every so often, until somebody leaves.

Owns the keys and the layout. A look is taken in a thread of its own: a place that hangs freezes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static, TabbedContent, TabPane

from seawall.top.cells import LOGS, PLACES, SCALED, headline, log_cells, place_cells, scaled_cells
from seawall.top.fleet import Fleet, fleet
from seawall.top.scrape import Look

ROWS_MAX = 1_000  # of a table: who reads further has a question for `seawall tier status`


class Top(App[None]):
    """`look` gives one look at every place."""

    TITLE = "seawall top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #headline { height: 1; padding: 0 1; background: $panel; }
    TabbedContent, DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "Leave"),
        Binding("space", "pause", "Hold still"),
        Binding("b", "bad_only", "Bad ones only"),
        Binding("r", "now", "Look now"),
    ]

    def __init__(self, look: Callable[[], Sequence[Look]], *, every_s: float) -> None:
        super().__init__()
        self._look = look
        self._every_s = every_s
        self._before: Sequence[Look] = ()
        self._is_held = self._is_bad_only = False
        self.seen: Fleet | None = None

    def compose(self) -> ComposeResult:
        yield Static("looking ...", id="headline")
        with TabbedContent(initial="logs"):
            for name, title, columns in (
                ("logs", "Logs, the worst first", LOGS),
                ("places", "Places", PLACES),
                ("scaled", "Scaled groups", SCALED),
            ):
                with TabPane(title, id=name):
                    table: DataTable[Text] = DataTable(
                        id=f"{name}-table", cursor_type="row", zebra_stripes=True
                    )
                    table.add_columns(*columns)
                    yield table
        yield Footer()

    def on_mount(self) -> None:
        self.action_now()
        self.set_interval(self._every_s, self._tick)

    def action_now(self) -> None:
        self.run_worker(self._look_once, thread=True, exclusive=True)

    def action_pause(self) -> None:
        self._is_held = not self._is_held
        self._draw()

    def action_bad_only(self) -> None:
        self._is_bad_only = not self._is_bad_only
        self._draw()

    def _tick(self) -> None:
        if not self._is_held:
            self.action_now()

    def _look_once(self) -> None:
        looks = self._look()
        self.call_from_thread(self._take, looks)

    def _take(self, looks: Sequence[Look]) -> None:
        self.seen = fleet(looks, self._before)
        self._before = looks
        self._draw()

    def _draw(self) -> None:
        if self.seen is None:
            return
        line = headline(self.seen)
        if self._is_held:
            line.append("   held still", style="reverse")
        self.query_one("#headline", Static).update(line)
        logs = [each for each in self.seen.logs if each.is_bad or not self._is_bad_only]
        places = [each for each in self.seen.places if each.trouble or each.doubts or not self._is_bad_only]
        self._fill("logs", map(log_cells, logs[:ROWS_MAX]))
        self._fill("places", map(place_cells, places[:ROWS_MAX]))
        self._fill("scaled", map(scaled_cells, self.seen.scaled[:ROWS_MAX]))

    def _fill(self, name: str, rows: Iterable[tuple[Text, ...]]) -> None:
        table = self.query_one(f"#{name}-table", DataTable)
        cursor, scrolled = table.cursor_row, table.scroll_y
        table.clear()
        table.add_rows(rows)
        table.move_cursor(row=cursor, scroll=False)
        table.scroll_to(y=scrolled, animate=False)
