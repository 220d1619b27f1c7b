"""Hostile check endpoints, each on a port of its own; shared by faults, tests and benchmarks.

None of them gives one valid verdict alone. Some give the true verdict together with something that
must not count.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from chaos.history.writer import HistoryWriter
from chaos.workload.endpoint import LARGEST_BODY, Endpoint
from devservers.child import CLEAN_ENVIRONMENT
from outbox.settings.environment import process_environment

VARIABLE: Final = "CHAOS_HOSTILE_ENDPOINTS"
NAME: Final = "zoo-0"
"""The name of the program and of its history file, as recorded runs have it."""
LOOPBACK: Final = "127.0.0.1"
EXPIRED_TLS: Final = "expired_tls"
"""Serves HTTPS with a certificate that has expired; listens only where a port is given for it."""
FOREVER: Final = 3600.0
UNKNOWN_ID: Final = "ffffffffffffffffffffffffffffffff"
JSON: Final = "application/json"
OPPOSITE: Final = {"COMMIT": "ROLLBACK", "ROLLBACK": "COMMIT", "UNKNOWN": "COMMIT"}
BOMB: Final = gzip.compress(b" " * 10_000_000)

TrueAnswer = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""Returns the true answer to a request with an id."""


class ReceivedCheck(NamedTuple):
    """One request and the way to its true answer."""

    request: Mapping[str, Any]
    request_id: str
    answer: TrueAnswer
    number: int
    """counts the requests of one hostile endpoint, from 0"""

    def truth(self) -> dict[str, Any]:
        """Return the true answer, and note that it was given."""
        return self.answer(self.request, self.request_id)


Behaviour = Callable[[ReceivedCheck, asyncio.StreamWriter], Awaitable[None]]


def main() -> int:
    """Misbehave until killed or asked to stop."""
    given = json.loads(process_environment()[VARIABLE])
    asyncio.run(serve(Path(given["run"]), given["ports"], given["life"]))
    return 0


def environment_of(run: Path, ports: Mapping[str, int], life: int) -> dict[str, str]:
    """Return the environment of the process; ``ports`` maps each endpoint's name to its port."""
    about = {"run": str(run), "ports": dict(ports), "life": life}
    return {**CLEAN_ENVIRONMENT, VARIABLE: json.dumps(about)}


async def serve(run: Path, ports: Mapping[str, int], life: int) -> None:
    """Listen on every port until the process ends."""
    endpoint = Endpoint(run, HistoryWriter(run, NAME, life))
    for name, port in ports.items():
        tls = _expired_tls(run) if name == EXPIRED_TLS else None
        behaviour = html if tls else HOSTILE_ENDPOINTS[name]
        connected = partial(serve_connection, behaviour, endpoint.answer, count())
        await asyncio.start_server(connected, LOOPBACK, port, limit=LARGEST_BODY, ssl=tls)
    await asyncio.get_running_loop().create_future()


async def serve_connection(
    behaviour: Behaviour,
    answer: TrueAnswer,
    numbers: count[int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection: read one request, then answer it with the behaviour."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers["content-length"]))
        check = ReceivedCheck(json.loads(body), headers["webhook-id"], answer, next(numbers))
        await behaviour(check, writer)
        await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def silent(_: ReceivedCheck, __: asyncio.StreamWriter) -> None:
    """Accept and send nothing."""
    await asyncio.sleep(FOREVER)


async def drip(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT at one byte per second."""
    for byte in _http(_of(check, "COMMIT")):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(1.0)


async def endless_headers(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
        await writer.drain()


async def big_body(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send a body without end."""
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\n\r\n".encode())
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


async def gzip_bomb(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send a small body that unpacks to a large one."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {JSON}\r\ncontent-encoding: gzip\r\n"
    writer.write(f"{head}content-length: {len(BOMB)}\r\n\r\n".encode() + BOMB)


async def html(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send an HTML page that contains the word COMMIT."""
    writer.write(_http("<html>COMMIT</html>", kind="text/html"))


async def redirect(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Redirect the checker, with a verdict in the body."""
    status = "307 Temporary Redirect\r\nlocation: http://169.254.169.254/latest/meta-data/"
    writer.write(_http(_of(check, "COMMIT"), status=status))


async def busy(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Ask for no call within thirty years, with a verdict in the body."""
    status = "429 Too Many Requests\r\nretry-after: 1000000000"
    writer.write(_http(_of(check, "COMMIT"), status=status))


async def broken_json(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT in JSON without its end."""
    writer.write(_http(json.dumps(_of(check, "COMMIT"))[:-1]))


async def deep_json(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT and then brackets that nest as deep as the largest answer allows."""
    writer.write(_http(json.dumps(_of(check, "COMMIT"))[:-1] + ', "reason": ' + "[" * 15_000))


async def huge_headers(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT after a megabyte of headers."""
    padding = "".join(f"\r\nx-{n}: {'a' * 4000}" for n in range(250))
    writer.write(_http(_of(check, "COMMIT"), status=f"200 OK{padding}"))


async def wrong_id(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT for a message that is not in the check."""
    verdict = {"message_id": UNKNOWN_ID, "decision": "COMMIT"}
    writer.write(_http({"verdicts": [verdict], **verdict}))


async def missing_id(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT without a message id."""
    writer.write(_http({"verdicts": [{"decision": "COMMIT"}], "decision": "COMMIT"}))


async def extra_id(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send the true answer, and COMMIT for an unknown message in the same answer."""
    truth = check.truth()
    stranger = {"message_id": UNKNOWN_ID, "decision": "COMMIT"}
    writer.write(_http({**truth, "verdicts": [stranger, *truth.get("verdicts", [])]}))


async def two_verdicts(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send COMMIT and ROLLBACK in one answer."""
    both = [_of(check, decision) for decision in ("COMMIT", "ROLLBACK")]
    if "verdicts" in both[0]:
        writer.write(_http({"verdicts": both[0]["verdicts"] + both[1]["verdicts"]}))
    else:
        text = json.dumps(both[0])[:-1] + ', "decision": "ROLLBACK"}'
        writer.write(_http(text))


async def two_answers(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send the true answer and then, without a request, its opposite on the same connection."""
    truth = check.truth()
    lie = json.loads(json.dumps(truth))
    for verdict in lie.get("verdicts", [lie]):
        verdict["decision"] = OPPOSITE[verdict["decision"]]
    writer.write(_http(truth) + _http(lie))
    await writer.drain()
    await asyncio.sleep(1.0)


async def every_second(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Alternate between a 500 that holds a verdict and the true answer."""
    if check.number % 2:
        writer.write(_http(check.truth()))
    else:
        writer.write(_http(_of(check, "COMMIT"), status="500 Oops"))


async def cut_short(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Close the connection in the middle of the answer."""
    writer.write(_http(_of(check, "COMMIT"))[:-5])


async def half_close(check: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Close only the sending direction in the middle of the answer."""
    writer.write(_http(_of(check, "COMMIT"))[:-5])
    writer.write_eof()
    await asyncio.sleep(FOREVER)


async def reset(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Break the connection after the request."""
    writer.transport.abort()


async def not_http(_: ReceivedCheck, writer: asyncio.StreamWriter) -> None:
    """Send another protocol than HTTP."""
    writer.write(b"220 mail.example ESMTP COMMIT\r\n")


HOSTILE_ENDPOINTS: Final[Mapping[str, Behaviour]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        *(silent, drip, endless_headers, big_body, gzip_bomb, html, wrong_id, missing_id),
        *(extra_id, two_verdicts, two_answers, every_second, cut_short, reset, not_http),
        *(redirect, busy, broken_json, deep_json, huge_headers, half_close),
    )
}


def _of(check: ReceivedCheck, decision: str) -> dict[str, Any]:
    """Return an answer with the same decision for every message of the check."""
    data = check.request["data"]
    verdicts = [
        {"message_id": each["message_id"], "decision": decision}
        for each in data.get("checks", [data])
    ]
    return {"verdicts": verdicts} if "checks" in data else verdicts[0]


def _http(body: Mapping[str, Any] | str, kind: str = JSON, status: str = "200 OK") -> bytes:
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(text)}\r\n\r\n"
    return head.encode() + text


def _expired_tls(folder: Path) -> ssl.SSLContext:
    """Return the TLS context of a server whose self-signed certificate expired years ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, LOOPBACK)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2021, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(LOOPBACK))]), False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "expired.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


if __name__ == "__main__":
    main()
