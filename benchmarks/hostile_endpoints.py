"""Every hostile check endpoint of the crash harness, and one whose certificate has expired, each on
a port of its own, in a process of their own. Prints their names and ports.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from chaos.history import HistoryWriter
from chaos.workload.endpoint import LARGEST_BODY, Endpoint
from chaos.workload.hostile_endpoints import BEASTS, NAME, meet

EXPIRED_TLS: Final = "expired_tls"
LOOPBACK: Final = "127.0.0.1"


@contextmanager
def beasts() -> Iterator[Mapping[str, str]]:
    """Run them for the block; yield the check URL of each."""
    with tempfile.TemporaryDirectory(prefix="outbox-beasts-") as folder:
        command = [sys.executable, "-m", "benchmarks.hostile_endpoints", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield _urls(json.loads(process.stdout.readline()))
            finally:
                process.kill()


def _urls(ports: Mapping[str, int]) -> dict[str, str]:
    return {
        name: f"{'https' if name == EXPIRED_TLS else 'http'}://{LOOPBACK}:{port}/check"
        for name, port in ports.items()
    }


async def main(folder: Path) -> None:
    """Serve until killed; the folder keeps what the truthful ones of them have said."""
    (folder / "truth").mkdir()
    endpoint = Endpoint(folder, HistoryWriter(folder, NAME))
    ports = {}
    for name, beast in {**BEASTS, EXPIRED_TLS: BEASTS["html"]}.items():
        tls = _expired(folder) if name == EXPIRED_TLS else None
        met = partial(meet, beast, endpoint, count())
        server = await asyncio.start_server(met, LOOPBACK, 0, limit=LARGEST_BODY, ssl=tls)
        ports[name] = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"{json.dumps(ports)}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def _expired(folder: Path) -> ssl.SSLContext:
    """Return the TLS of a server whose certificate nobody has signed and that ended years ago."""
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
    asyncio.run(main(Path(sys.argv[1])))
