"""A headless Chromium, driven over its DevTools protocol: no further package is needed."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp

PROGRAM: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
LIVENESS_SECONDS: Final = 60
COMPLAINTS: Final = frozenset({"security", "javascript"})
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class Tab:
    """One tab: what a person does in it, and what they see."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        """Errors of scripts, and what the content security policy refused."""
        self.requested: list[str] = []
        """The addresses that the pages loaded."""
        self._reader = asyncio.create_task(self._read())

    async def open(self, address: str) -> None:
        """Load an address."""
        await self._loading(self.command("Page.navigate", url=address))

    async def click(self, selector: str, *, loads: bool = True) -> None:
        """Click on an element; ``loads``: another page follows."""
        found = await self.js(f"document.querySelector({json.dumps(selector)}) !== null")
        assert found, f"no {selector} on {await self.text()}"
        clicked = self.js(f"document.querySelector({json.dumps(selector)}).click()")
        await (self._loading(clicked) if loads else clicked)

    async def fill(self, selector: str, text: str) -> None:
        """Write into a field."""
        at = json.dumps(selector)
        await self.js(f"document.querySelector({at}).value = {json.dumps(text)}")

    async def point_at(self, x: int, y: int) -> None:
        """Move the pointer."""
        await self.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def text(self) -> str:
        """Return the words on the page."""
        return re.sub(r"\s+", " ", str(await self.js("document.body.innerText")))

    async def address(self) -> str:
        """Return the path and query of the page."""
        return str(await self.js("location.pathname + location.search"))

    async def until(self, expression: str) -> None:
        """Wait until an expression of the page is true; the page may load again meanwhile."""
        async with asyncio.timeout(LIVENESS_SECONDS):
            while True:
                with suppress(RuntimeError):  # the page was replaced
                    if await self.js(f"document.readyState === 'complete' && ({expression})"):
                        return
                await asyncio.sleep(0.05)

    async def js(self, expression: str) -> Any:
        """Return the value of an expression; the debugger is not bound by the page's policy."""
        answer = await self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def resize(self, width: int, height: int = 800) -> None:
        """Give the window a size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.command("Emulation.setDeviceMetricsOverride", **size)

    async def picture(self, *, width: int, height: int) -> bytes:
        """Return a picture of the page, as PNG."""
        features = [{"name": "prefers-color-scheme", "value": "light"}]
        await self.command("Emulation.setEmulatedMedia", features=features)
        await self.resize(width, height)
        taken = await self.command("Page.captureScreenshot", format="png")
        return base64.b64decode(taken["data"])

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its result."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(LIVENESS_SECONDS):
            return await self._waiting[number]

    async def close(self) -> None:
        """End the connection."""
        await self._socket.close()
        await self._reader

    async def _loading(self, action: Any) -> None:
        """Do what loads a page, and return once the new page is complete."""
        await self.js("window.beforeLoading = true")
        await action
        async with asyncio.timeout(LIVENESS_SECONDS):
            while True:
                await asyncio.sleep(0.02)
                try:
                    loaded = "!window.beforeLoading && document.readyState === 'complete'"
                    if await self.js(loaded):
                        return
                except RuntimeError:  # the page was replaced meanwhile
                    continue

    async def _read(self) -> None:
        async for message in self._socket:
            given = json.loads(message.data)
            waiting = self._waiting.pop(given.get("id", 0), None)
            if waiting is None:
                self._note(given)
            elif "error" in given:
                waiting.set_exception(RuntimeError(str(given["error"])))
            else:
                waiting.set_result(given["result"])

    def _note(self, event: dict[str, Any]) -> None:
        given = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"]))
        if event["method"] == "Log.entryAdded" and given["entry"]["source"] in COMPLAINTS:
            self.complaints.append(str(given["entry"]["text"]))
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(given["request"]["url"])


@asynccontextmanager
async def chromium() -> AsyncIterator[Tab]:
    """Run a browser of its own and yield its tab."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM),
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with aiohttp.ClientSession() as session:
                address = f"http://127.0.0.1:{await _port(Path(profile), process)}/json/list"
                async with session.get(address) as answer:
                    pages = [each for each in await answer.json() if each["type"] == "page"]
                socket = await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.command(f"{domain}.enable")
                yield tab
                await tab.close()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _port(profile: Path, process: asyncio.subprocess.Process) -> int:
    """Return the port of the debugger, once the browser has written it down."""
    async with asyncio.timeout(LIVENESS_SECONDS):
        while True:
            assert process.returncode is None, "Chromium has ended"
            try:
                return int((profile / "DevToolsActivePort").read_text().split()[0])
            except (FileNotFoundError, IndexError):
                await asyncio.sleep(0.05)
