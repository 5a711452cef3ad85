"""An event loop in a thread of its own, for tests whose clients are blocking ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from threading import Event, Thread
from typing import Any

READY_S = 30.0


class Looping:
    """Runs `main`, which says when it is ready; made when it is, or raises what it ended with before."""

    def __init__(self, main: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]) -> None:
        self._main = main
        self._ready = Event()
        self.failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="serve-loop", daemon=True)
        self._thread.start()
        assert self._ready.wait(READY_S)
        if self.failure is not None:
            raise self.failure

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for its end, and raise what it ended with."""
        self._thread.join(READY_S)
        assert not self._thread.is_alive(), "it does not end"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            asyncio.run(self._main(self._ready.set))
        except BaseException as error:  # noqa: BLE001 told to the thread that waits
            self.failure = error
        finally:
            self._ready.set()
