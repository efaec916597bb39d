"""Debian's chromium without a window, driven through its DevTools protocol: as much of it as looking at a page takes."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from websockets.sync.client import ClientConnection, connect

from lowtide.airflowctl import LocalAirflow

_SECONDS = 180
_opener = build_opener(ProxyHandler({}))


class Browser:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        #: Addresses asked for, and what scripts complained of, since the tab was opened.
        self.requests: list[str] = []
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": arguments}))
        while True:
            message = json.loads(self._socket.recv(timeout=_SECONDS))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, event: str | None, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"].get("exception", about)))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")

    def open(self, address: str) -> None:
        """Go to an address; what follows waits for what it needs by itself."""
        self.do("Page.navigate", url=address)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is; promises are awaited."""
        answer = self.do("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def await_value(self, expression: str) -> Any:
        """The expression's value as soon as it is one that counts as true."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                if found := self.value(expression):
                    return found
            except RuntimeError:
                pass  # the page is under way
            time.sleep(0.2)
        raise TimeoutError(f"{expression} did not come true within {_SECONDS} s; the page says: {self.errors}")

    def press(self, element: str) -> None:
        """Press the mouse on what a JavaScript expression finds, once it is there, not disabled, and stands still."""
        place = f"(e => (r => [r.x + r.width / 2, r.y + r.height / 2])(e.getBoundingClientRect()))({element})"
        self.await_value(f"(e => e && !e.disabled)({element})")
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        before, at = None, self.value(place)
        while at != before:
            time.sleep(0.3)
            before, at = at, self.value(place)
        for event in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=event, x=at[0], y=at[1], button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        """Put text into a field, as a keyboard does: once the field is there and takes the focus."""
        field = f"document.querySelector({selector!r})"
        self.await_value(f"(e => e && (e.focus(), document.activeElement === e))({field})")
        self.do("Input.insertText", text=text)

    def key(self, name: str, code: int, text: str = "", shift: bool = False) -> None:
        """Press and let go of a key, by its name and Windows' code for it: ``Tab`` is 9, ``Enter`` is 13 with text ``\\r``."""
        about = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.do("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **about)
        self.do("Input.dispatchKeyEvent", type="keyUp", **about)

    def look(self, width: int, height: int, scheme: str) -> None:
        """Make the window that large, and prefer ``light`` or ``dark``."""
        self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path, quality: int = 80) -> None:
        """Save what is seen, as PNG, or as WebP of that quality: what the file's name ends in."""
        how: dict[str, Any] = {"format": "webp", "quality": quality} if file.suffix == ".webp" else {"format": "png"}
        file.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", **how)["data"]))


def log_in(page: Browser, airflow: LocalAirflow) -> None:
    """Log in to a local Airflow as its one user, and see its page with the plugin's tab."""
    page.open(f"{airflow.config.url}/auth/login/")
    page.await_value("document.querySelector('input[type=password]') !== null")
    page.type("input:not([type=password])", airflow.user)
    page.type("input[type=password]", airflow.password)
    page.await_value("!document.querySelector('button[type=submit]').disabled")
    page.value("document.querySelector('button[type=submit]').click()")
    page.await_value("[...document.querySelectorAll('a')].some(a => a.href.endsWith('/plugin/lowtide'))")


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile lies in *folder*, ended at the end."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("chromium is not installed; on Debian: apt-get install chromium")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--no-proxy-server",
    ]
    options += [
        "--disable-background-networking",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        "about:blank",
    ]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # Without pings: while a test waits for something else nobody reads what the tab tells, nor the answers to them.
        with connect(
            _tab(folder, process), max_size=None, proxy=None, open_timeout=_SECONDS, ping_interval=None
        ) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _tab(folder: Path, process: subprocess.Popen[bytes]) -> str:
    file = folder / "DevToolsActivePort"
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if file.exists() and (lines := file.read_text().splitlines()):
            with _opener.open(f"http://127.0.0.1:{lines[0]}/json/list", timeout=_SECONDS) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise RuntimeError(f"chromium did not start (exit code {process.poll()})")
