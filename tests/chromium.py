"""Chromium without a window, driven by its DevTools protocol over a pipe: real clicks, keys, screens and themes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Browser:
    """A browser with one tab.

    Args:
        folder: where it keeps its profile.
    """

    def __init__(self, folder: Path) -> None:
        to_browser, from_browser = os.pipe(), os.pipe()
        command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={folder / 'profile'}", "--allow-file-access-from-files", "about:blank"]
        quiet = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}

        def connect() -> None:  # the pipe is at 3 and 4 by definition
            read, write = (os.dup2(os.dup(end), 100 + k) for k, end in enumerate((to_browser[0], from_browser[1])))
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            command,
            preexec_fn=connect,
            close_fds=False,
            env={**os.environ, **quiet},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._write, self._read = open(to_browser[1], "wb"), open(from_browser[0], "rb")  # noqa: SIM115
        self._number, self._session, self._left = 0, "", b""
        self.events: list[dict[str, Any]] = []
        target = next(each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._write.close()
        self._read.close()
        self._process.kill()
        self._process.wait()

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        while True:
            answer = json.loads(self._message())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def _message(self) -> bytes:
        while b"\0" not in self._left:
            part = os.read(self._read.fileno(), 1 << 20)
            assert part, "the browser ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return message

    def open(
        self,
        path: Path,
        width: int = 1200,
        height: int = 900,
        *,
        dark: bool = False,
        scripts: bool = True,
        live: bool = True,
    ) -> None:
        """Show a page, and wait until its script has done its work; `live=False` for pages that are no reports."""
        self.events.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self._call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")
        if scripts and live:
            self.wait("document.documentElement.dataset.live === ''")

    def run(self, code: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self._call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, code: str, seconds: float = 60) -> Any:
        """The value of an expression, once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(code):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {code}; {self.console()}")

    def move(self, selector: str, *, click: bool = False, wheel: float = 0.0, dx: float = 0.0, dy: float = 0.0) -> None:
        """Move the pointer to the middle of an element, or beside it, and click or turn the wheel there."""
        x, y = self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)}); "
            "element.scrollIntoView({block: 'center', behavior: 'instant'}); "
            "const box = element.getBoundingClientRect(); "
            "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        place = {"x": x + dx, "y": y + dy}
        self._call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        if wheel:
            self._call("Input.dispatchMouseEvent", type="mouseWheel", **place, deltaX=0, deltaY=wheel)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self._call("Input.dispatchMouseEvent", type=kind, **place, button="left", clickCount=1)

    def click(self, selector: str) -> None:
        self.move(selector, click=True)

    def type(self, selector: str, text: str) -> None:
        """Click into a field, and type a text instead of what is there."""
        self.click(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).select()")
        self._call("Input.insertText", text=text)

    def console(self) -> list[str]:
        """What stands on the console, violations of the page's policy and uncaught errors included."""
        self._call("Runtime.evaluate", expression="0")
        names = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(each["params"])[:500] for each in self.events if each["method"] in names]

    def requests(self) -> list[str]:
        """What was asked for, the page itself and parts of it left out."""
        asked = (each["params"] for each in self.events if each["method"] == "Network.requestWillBeSent")
        urls = (each["request"]["url"] for each in asked if each["type"] != "Document")
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is shown as PNG."""
        more = {"captureBeyondViewport": True} if whole else {}
        if whole:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            more["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", **more)["data"]))
