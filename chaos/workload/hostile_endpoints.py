"""Check endpoints that misbehave, a port each: none of them gives one valid verdict, or they give
the true one with something beside it that must not count.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from chaos.history import HistoryWriter
from chaos.workload.endpoint import LARGEST_BODY, Endpoint
from devservers.child import CLEAN_ENVIRONMENT
from outbox.settings.environment import process_environment

VARIABLE: Final = "CHAOS_ZOO"
NAME: Final = "zoo-0"
FOREVER: Final = 3600.0
STRANGER: Final = "ffffffffffffffffffffffffffffffff"
JSON: Final = "application/json"
OPPOSITE: Final = {"COMMIT": "ROLLBACK", "ROLLBACK": "COMMIT", "UNKNOWN": "COMMIT"}
BOMB: Final = gzip.compress(b" " * 10_000_000)


class Asked(NamedTuple):
    """One request and who can answer it."""

    request: Mapping[str, Any]
    request_id: str
    endpoint: Endpoint
    number: int
    """of the requests that this beast has had"""

    def truth(self) -> dict[str, Any]:
        """Return the true answer, and note that it was given."""
        return self.endpoint.answer(self.request, self.request_id)


Beast = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def main() -> int:
    """Misbehave until killed or asked to stop."""
    given = json.loads(process_environment()[VARIABLE])
    asyncio.run(serve(Path(given["run"]), given["ports"], given["life"]))
    return 0


def environment_of(run: Path, ports: Mapping[str, int], life: int) -> dict[str, str]:
    """Return the environment of the zoo's process; ``ports`` says where each beast listens."""
    about = {"run": str(run), "ports": dict(ports), "life": life}
    return {**CLEAN_ENVIRONMENT, VARIABLE: json.dumps(about)}


async def serve(run: Path, ports: Mapping[str, int], life: int) -> None:
    """Listen on every port for ever."""
    endpoint = Endpoint(run, HistoryWriter(run, NAME, life))
    for name, port in ports.items():
        met = partial(meet, BEASTS[name], endpoint, count())
        await asyncio.start_server(met, "127.0.0.1", port, limit=LARGEST_BODY)
    await asyncio.get_running_loop().create_future()


async def meet(
    beast: Beast,
    endpoint: Endpoint,
    numbers: count[int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection: read one request, answer as the beast does."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers["content-length"]))
        asked = Asked(json.loads(body), headers["webhook-id"], endpoint, next(numbers))
        await beast(asked, writer)
        await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def silent(_: Asked, __: asyncio.StreamWriter) -> None:
    """Accept and say nothing."""
    await asyncio.sleep(FOREVER)


async def drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT at a byte a second."""
    for byte in _http(_of(asked, "COMMIT")):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1.0)


async def endless_headers(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
        await writer.drain()


async def big_body(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Send a body without end."""
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n".encode())
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


async def gzip_bomb(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Send little that becomes much."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-encoding: gzip\r\n"
    writer.write(f"{head}content-length: {len(BOMB)}\r\n\r\n".encode() + BOMB)


async def html(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Send a page that contains a verdict's word."""
    writer.write(_http("<html>COMMIT</html>", kind="text/html"))


async def redirect(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Send the checker elsewhere, with a verdict in the body."""
    status = "307 Temporary Redirect\r\nlocation: http://169.254.169.254/latest/meta-data/"
    writer.write(_http(_of(asked, "COMMIT"), status=status))


async def busy(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Ask to be left alone for thirty years, with a verdict in the body."""
    status = "429 Too Many Requests\r\nretry-after: 1000000000"
    writer.write(_http(_of(asked, "COMMIT"), status=status))


async def broken_json(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT in JSON that does not end."""
    writer.write(_http(json.dumps(_of(asked, "COMMIT"))[:-1]))


async def deep_json(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT in front of brackets that nest as deep as the answer may be long."""
    writer.write(_http(json.dumps(_of(asked, "COMMIT"))[:-1] + ', "reason": ' + "[" * 15_000))


async def huge_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT behind headers of a megabyte."""
    padding = "".join(f"\r\nx-{n}: {'a' * 4000}" for n in range(250))
    writer.write(_http(_of(asked, "COMMIT"), status=f"200 OK{padding}"))


async def wrong_id(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT for a message that nobody has asked about."""
    verdict = {"message_id": STRANGER, "decision": "COMMIT"}
    writer.write(_http({"verdicts": [verdict], **verdict}))


async def missing_id(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT for nobody."""
    writer.write(_http({"verdicts": [{"decision": "COMMIT"}], "decision": "COMMIT"}))


async def extra_id(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Tell the truth, and COMMIT for a stranger beside it."""
    truth = asked.truth()
    stranger = {"message_id": STRANGER, "decision": "COMMIT"}
    writer.write(_http({**truth, "verdicts": [stranger, *truth.get("verdicts", [])]}))


async def two_verdicts(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say COMMIT and ROLLBACK in one answer."""
    both = [_of(asked, decision) for decision in ("COMMIT", "ROLLBACK")]
    if "verdicts" in both[0]:
        writer.write(_http({"verdicts": both[0]["verdicts"] + both[1]["verdicts"]}))
    else:
        text = json.dumps(both[0])[:-1] + ', "decision": "ROLLBACK"}'
        writer.write(_http(text))


async def two_answers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Tell the truth and, unasked, the opposite on the same connection."""
    truth = asked.truth()
    lie = json.loads(json.dumps(truth))
    for verdict in lie.get("verdicts", [lie]):
        verdict["decision"] = OPPOSITE[verdict["decision"]]
    writer.write(_http(truth) + _http(lie))
    await writer.drain()
    await asyncio.sleep(1.0)


async def every_second(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Answer 500 with a verdict in it, then tell the truth."""
    if asked.number % 2:
        writer.write(_http(asked.truth()))
    else:
        writer.write(_http(_of(asked, "COMMIT"), status="500 Oops"))


async def cut_short(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """End amid the answer."""
    writer.write(_http(_of(asked, "COMMIT"))[:-5])


async def half_close(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """End amid the answer in this direction alone, and go on listening."""
    writer.write(_http(_of(asked, "COMMIT"))[:-5])
    writer.write_eof()
    await asyncio.sleep(FOREVER)


async def reset(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Break the connection after the request."""
    writer.transport.abort()


async def not_http(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Speak another protocol."""
    writer.write(b"220 mail.example ESMTP COMMIT\r\n")


BEASTS: Final[Mapping[str, Beast]] = {
    beast.__name__: beast
    for beast in (
        *(silent, drip, endless_headers, big_body, gzip_bomb, html, wrong_id, missing_id),
        *(extra_id, two_verdicts, two_answers, every_second, cut_short, reset, not_http),
        *(redirect, busy, broken_json, deep_json, huge_headers, half_close),
    )
}


def _of(asked: Asked, decision: str) -> dict[str, Any]:
    """Return an answer that says the same for every message asked about."""
    data = asked.request["data"]
    verdicts = [
        {"message_id": check["message_id"], "decision": decision}
        for check in data.get("checks", [data])
    ]
    return {"verdicts": verdicts} if "checks" in data else verdicts[0]


def _http(body: Mapping[str, Any] | str, kind: str = JSON, status: str = "200 OK") -> bytes:
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n"
    return head.encode() + text
