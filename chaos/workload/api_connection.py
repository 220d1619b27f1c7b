"""A keep-alive HTTP/1.1 connection with little CPU cost, so that the clients are no bottleneck."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

CALL_SECONDS: Final = 10.0
LONGEST_ANSWER: Final = 1 << 24


class OutcomeUnknown(Exception):
    """It is unknown whether the call had an effect: time-out, reset, or a 5xx."""


class ApiConnection:
    """One connection to one API, opened when needed and again after a failure."""

    def __init__(self, port: int, api_key: str) -> None:
        self._port = port
        self._head = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {api_key}\r\n"
            "Content-Type: application/json\r\n"
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and JSON of the answer; raises OutcomeUnknown."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                status, headers, answer = await self._post(path, json.dumps(body).encode())
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise OutcomeUnknown(type(error).__name__) from error
        if status >= 500:
            raise OutcomeUnknown(str(status))
        return status, headers, answer

    def close(self) -> None:
        """Close the connection."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()

    async def _post(self, path: str, body: bytes) -> tuple[int, dict[str, str], Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=LONGEST_ANSWER
            )
        reader, writer = self._streams
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): text.strip()
            for name, _, text in (line.partition(":") for line in lines[1:] if line)
        }
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split(" ", 2)[1]), headers, json.loads(content) if content else None
