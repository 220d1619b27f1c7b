"""The shipped nginx in front of the API: it passes requests on, and ends clients that are slow."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from devservers.loopback import free_ports
from tests.fixtures_certificates import CertificateAuthority
from tests.fixtures_paths import PROJECT
from tests.integration.api.fixtures_api_process import served
from tests.integration.api.fixtures_service import GROUPS, HALVES, prepare_body

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]

DEPLOY = PROJECT / "deploy"
FILES = ("nginx/nginx.conf", "nginx/api.conf", "nginx/plain.conf", "tls/tls.conf")
OVER_THE_LIMIT = 9 << 20
JSON = {"content-type": "application/json"}
LIVENESS_SECONDS = 60


@dataclass(frozen=True)
class Proxy:
    """The ports of the API behind nginx, and a client that comes with TLS."""

    plain: int
    tls: httpx2.AsyncClient


def configured(folder: Path, ports: dict[str, str], authority: CertificateAuthority) -> Path:
    """Write the shipped files with this test's ports, paths and short times."""
    certificate, key = authority.sign("127.0.0.1")
    replaced = {
        **ports,
        r"/tmp/": f"{folder}/",
        r"/dev/stderr": f"{folder}/error.log",
        r"/etc/nginx/": f"{folder}/",
        r"/run/secrets/tls_certificate": str(certificate),
        r"/run/secrets/tls_key": str(key),
        r"(client_header|client_body)_timeout 10s": r"\1_timeout 1s",
    }
    (folder / "servers").mkdir()
    for name in FILES:
        text = (DEPLOY / name).read_text("utf-8")
        for old, new in replaced.items():
            text = re.sub(old, new, text)
        place = "servers" if name.endswith(("plain.conf", "tls.conf")) else "."
        (folder / place / Path(name).name).write_text(text)
    return folder / "nginx.conf"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxy(
    module_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Proxy]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is missing: apt-get install nginx-light")
    folder = tmp_path_factory.mktemp("proxy")
    authority = CertificateAuthority(folder / "certificates")
    plain, tls = free_ports(2)
    async with served(module_database) as api:
        ports = {
            r"listen 8080": f"listen 127.0.0.1:{plain}",
            r"listen 8443": f"listen 127.0.0.1:{tls}",
            r"http://api:8080": f"http://127.0.0.1:{api.port}",
        }
        written = configured(folder, ports, authority)
        options = ("-p", folder, "-c", written, "-g", "daemon off; user root;")
        process = await asyncio.create_subprocess_exec(program, *options)
        trusted = ssl.create_default_context(cafile=str(authority.certificate))
        transport = httpx2.AsyncHTTPTransport(verify=trusted, retries=20)
        url = f"https://127.0.0.1:{tls}"
        try:
            async with httpx2.AsyncClient(transport=transport, base_url=url, timeout=60) as client:
                assert (await client.get("/livez")).status_code == 200
                yield Proxy(plain, client)
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), LIVENESS_SECONDS)


async def test_a_message_is_prepared_and_ended_through_the_proxy(proxy: Proxy) -> None:
    client = proxy.tls
    group = {"check_url": "http://127.0.0.1:9000/check"}
    assert (await client.put(f"{GROUPS}/billing", json=group)).status_code == 201
    prepared = await client.post(HALVES, json=prepare_body())
    assert prepared.status_code == 201, prepared.text
    end = f"{HALVES}/{prepared.json()['message_id']}/end"
    waited = {"Prefer": "wait=1"}
    ended = await client.post(end, json={"decision": "COMMIT"}, headers=waited)
    assert (ended.status_code, ended.json()["state"]) == (200, "COMMITTED")


async def test_a_body_over_the_limit_is_refused_with_the_reason_of_the_api(proxy: Proxy) -> None:
    for _ in range(5):  # the client sends everything before it reads
        body = b" " * OVER_THE_LIMIT
        answer = await proxy.tls.post(f"{HALVES}/batch", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")


async def test_a_stranger_reads_no_numbers_over_tls(proxy: Proxy) -> None:
    for path in ("/metrics", "/metrics?x", "/%6detrics", "//metrics", "/./metrics"):
        answer = await proxy.tls.get(path)
        assert answer.status_code == 404, path
        assert "outbox_" not in answer.text, path


async def test_slow_heads_and_slow_bodies_end_at_the_proxy(proxy: Proxy) -> None:
    head = f"POST {HALVES} HTTP/1.1\r\nhost: localhost\r\n"
    for sent in (head, f"{head}content-type: application/json\r\ncontent-length: 9\r\n\r\n{{"):
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.plain)
        writer.write(sent.encode())
        async with asyncio.timeout(LIVENESS_SECONDS):
            with suppress(ConnectionResetError):
                assert (await reader.read())[:10] != b"HTTP/1.1 2"
        writer.close()
