"""A headless Chromium, spoken to by its DevTools protocol over a pipe: no port, no package, no driver.

    with Chromium(binary) as browser, browser.page(file, width=1200) as page:
        page.evaluate("document.title")
        page.evaluate("looks.overflowing()")    what looks.js can ask

Owns the process. `page.complaints` is what the console and the network said that they should not have.
Invariant: every wait has a deadline, and the browser is gone when the block ends.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

DEADLINE_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")
LOOKS = Path(__file__).with_name("looks.js")
_HIGH = 20  # above what the browser's own ends of the pipe become


def installed() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One process, for as many pages as it takes."""

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._unread = b""

    def __enter__(self) -> Chromium:
        self._folder = tempfile.TemporaryDirectory(prefix="seawall-chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        ends = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _HIGH) for each in (theirs_in, theirs_out)]
        quiet = os.open(os.devnull, os.O_RDWR)
        flags = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        )
        arguments = [
            *(self._binary, *flags, "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}"),
            *(
                "--disable-background-networking",
                "--disable-component-update",
                "--hide-scrollbars",
                "about:blank",
            ),
        ]
        self._pid = os.posix_spawn(
            self._binary,
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, ends[0], 3),
                (os.POSIX_SPAWN_DUP2, ends[1], 4),
                (os.POSIX_SPAWN_DUP2, quiet, 1),
                (os.POSIX_SPAWN_DUP2, quiet, 2),
            ],
        )
        for each in (theirs_in, theirs_out, quiet, *ends):
            os.close(each)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.call("Browser.close")
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def call(self, method: str, *, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        told: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            told["sessionId"] = session
        os.write(self._out, json.dumps(told).encode() + b"\0")
        until = time.monotonic() + DEADLINE_S
        while True:
            message = self._next(until)
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result
            self._events.append(message)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What this page said since it was asked last."""
        own = [each for each in self._events if each.get("sessionId") == session]
        self._events = [each for each in self._events if each.get("sessionId") != session]
        return own

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser did not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser is gone"
            self._unread += part
        raw, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        return message

    @contextmanager
    def page(
        self, file: Path, *, width: int = 1200, height: int = 900, is_dark: bool = False
    ) -> Iterator[Page]:
        """Opened from disk, when its script has done all that it does by itself."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.shape(width=width, height=height, is_dark=is_dark)
        page.call("Page.navigate", url=file.as_uri())
        page.wait_for("location.protocol === 'file:' && document.readyState === 'complete'")
        page.wait_for("document.documentElement.dataset.ready === 'true'")
        page.evaluate(LOOKS.read_text())
        yield page
        self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One opened file."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self._said: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, session=self._session, **params)

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        until = time.monotonic() + DEADLINE_S
        while not self.evaluate(expression):
            assert time.monotonic() < until, f"never came: {expression}"

    def shape(self, *, width: int, height: int = 900, is_dark: bool = False, media: str = "") -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        still = {
            "name": "prefers-reduced-motion",
            "value": "reduce",
        }  # nothing is on its way when it is asked
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key as a person would: the browser's own focus order and defaults apply."""
        codes = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def screenshot(self, file: Path) -> bytes:
        """The whole page, as tall as it is."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12_000), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        data = base64.b64decode(shot["data"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return data

    def printed(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    @property
    def complaints(self) -> list[str]:
        """Exceptions, errors and warnings of the console, and every request but for the file itself."""
        self.evaluate("1")  # what was said up to now comes before the answer
        self._said += self._browser.events(self._session)
        found = []
        for each in self._said:
            method, told = each["method"], each["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(str(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(told["entry"]["text"])
            elif method == "Network.requestWillBeSent" and told["documentURL"] != told["request"]["url"]:
                found.append(f"asked for {told['request']['url']}")
        return found
