"""The proxies of the page about security and of compose: the API answers through them, with TLS."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from devservers.ports import free_ports
from tests.fixtures_certificates import CertificateAuthority
from tests.fixtures_paths import PROJECT
from tests.integration.api.fixtures_api_process import served

pytestmark = pytest.mark.postgres

PAGE = (PROJECT / "docs" / "security.md").read_text("utf-8")
SHIPPED = (PROJECT / "deploy/tls/nginx.conf").read_text("utf-8")
SERVERS = {
    "page": PAGE.partition("```nginx\n")[2].partition("```")[0],
    "deploy/tls": "  server {" + SHIPPED.partition("  server {")[2].rpartition("}")[0],
}
OVER_THE_LIMIT = 9 << 20
PART = 1 << 16
TIMES = 20
JSON = {"content-type": "application/json"}
AROUND = """user root;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
daemon off;
events {{}}
http {{
access_log off;
client_body_temp_path {folder}/body;
proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi;
scgi_temp_path {folder}/scgi;
{server}
}}
"""


def configuration(
    server: str, folder: Path, port: int, api_port: int, authority: CertificateAuthority
) -> str:
    """Return an example with this test's ports and files."""
    certificate, key = authority.sign("127.0.0.1")
    server = re.sub(r"listen \d+", f"listen 127.0.0.1:{port}", server)
    server = re.sub(r"http://(127\.0\.0\.1|api):8080", f"http://127.0.0.1:{api_port}", server)
    server = re.sub(r"(ssl_certificate +)\S+;", rf"\g<1>{certificate};", server)
    server = re.sub(r"(ssl_certificate_key +)\S+;", rf"\g<1>{key};", server)
    return AROUND.format(folder=folder, server=server)


@pytest.fixture(params=SERVERS)
async def https(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client that reaches the API through nginx."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        pytest.skip("nginx is missing: apt-get install nginx-light")
    authority = CertificateAuthority(tmp_path / "certificates")
    (port,) = free_ports(1)
    async with served(database_url) as api:
        written = tmp_path / "nginx.conf"
        server = SERVERS[request.param]
        written.write_text(configuration(server, tmp_path, port, api.port, authority))
        proxy = await asyncio.create_subprocess_exec(program, "-p", tmp_path, "-c", written)
        trusted = ssl.create_default_context(cafile=str(authority.certificate))
        transport = httpx2.AsyncHTTPTransport(verify=trusted, retries=20)
        url = f"https://127.0.0.1:{port}"
        try:
            async with httpx2.AsyncClient(transport=transport, base_url=url, timeout=60) as client:
                yield client
        finally:
            proxy.terminate()
            await asyncio.wait_for(proxy.wait(), 60)


async def test_a_message_is_prepared_and_ended_through_the_proxy(
    https: httpx2.AsyncClient,
) -> None:
    group = await https.put(
        "/v1/producer-groups/billing", json={"check_url": "http://127.0.0.1:9000/check"}
    )
    assert group.status_code == 201, group.text
    half = {"producer_group": "billing", "topic": "invoices", "value": "x"}
    prepared = await https.post("/v1/half-messages", json=half)
    assert prepared.status_code == 201, prepared.text
    path = f"/v1/half-messages/{prepared.json()['message_id']}/end"
    waited = {"Prefer": "wait=1"}
    ended = await https.post(path, json={"decision": "COMMIT"}, headers=waited)
    assert (ended.status_code, ended.json()["state"]) == (200, "COMMITTED")


@pytest.mark.parametrize(
    ("https", "said"),
    [("page", "413 Request Entity Too Large"), ("deploy/tls", "payload-too-large")],
    indirect=["https"],
)
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_refused_and_the_refusal_is_read_each_time(
    https: httpx2.AsyncClient, said: str, chunked: bool
) -> None:
    """The client sends everything before it reads: nothing may cut it off meanwhile."""
    for _ in range(TIMES):
        content = parts() if chunked else b" " * OVER_THE_LIMIT
        answer = await https.post("/v1/half-messages/batch", content=content, headers=JSON)
        assert answer.status_code == 413, answer.text
        assert said in answer.text


async def parts() -> AsyncIterator[bytes]:
    """Yield a body over the limit without saying its length."""
    for _ in range(OVER_THE_LIMIT // PART):
        yield b" " * PART


async def test_a_stranger_reads_no_numbers_through_the_proxy(https: httpx2.AsyncClient) -> None:
    for path in ("/metrics", "/metrics?x", "/%6detrics", "//metrics", "/./metrics"):
        answer = await https.get(path)
        assert answer.status_code == 404, path
        assert "outbox_" not in answer.text, path
    assert (await https.get("/livez")).status_code == 200
