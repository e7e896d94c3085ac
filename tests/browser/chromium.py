"""A headless Chromium that we talk to over a pipe: no driver, no socket, nothing to install."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from select import select

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


START = """
import os, sys
for end, place in zip(sys.argv[1:3], (103, 104)):
    os.dup2(int(end), place)
for place in (103, 104):
    os.dup2(place, place - 100)  # Chromium listens on 3 and answers on 4
os.closerange(5, 200)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The browser on this machine, or the one named by $CHROMIUM."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One page. Events (console, errors, requests) are kept in ``events``, in order."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.inn, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", START, str(theirs_in), str(theirs_out)),
                program,
                *FLAGS,
                f"--user-data-dir={self.profile.name}",
                "about:blank",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.events: list[dict] = []
        self.buffer, self.number, self.session = b"", 0, None
        try:
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self) -> None:
        """Find the one page there is, and listen to it."""
        page = next(t for t in self.pages() if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def pages(self) -> list[dict]:
        for _ in range(100):
            found = self.call("Target.getTargets")["targetInfos"]
            if any(t["type"] == "page" for t in found):
                return found
            time.sleep(0.05)
        raise TimeoutError("Chromium shows no page")

    def call(self, method: str, **params: object) -> dict:
        """Ask, and wait for the answer; events that come in between are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self, patience: float = 30) -> dict:
        while b"\0" not in self.buffer:
            if not select([self.inn], [], [], patience)[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self.inn, 1 << 20)
            if not data:
                raise ConnectionError("Chromium has gone")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(
        self,
        path: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
    ) -> None:
        """Show a file or an address and wait until it is loaded."""
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.look(width=width, height=height, dark=dark)
        self.events.clear()
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())
        time.sleep(0.1)  # let late requests show up
        self.js("0")

    def look(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Make the window so wide and high; narrow ones are those of a phone."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def js(self, expression: str) -> object:
        """The value of an expression in the page."""
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", **given)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def requests(self) -> list[str]:
        """Every address the page has asked for."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def complaints(self) -> list[dict]:
        """Console messages, log entries, uncaught errors, dialogs."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [e for e in self.events if e["method"] in (*kinds, "Page.javascriptDialogOpening")]

    def screenshot(self, *, whole: bool = True) -> bytes:
        """A PNG of the whole page or of its first screen."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """End the process that was started here, and only that."""
        self.process.terminate()
        self.process.wait(10)
        os.close(self.out)
        os.close(self.inn)
        self.profile.cleanup()
