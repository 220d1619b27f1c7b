"""The example endpoints in other languages: build, verify and serve commands."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from devservers.ports import free_ports
from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

EXAMPLES = PROJECT / "examples" / "check_endpoints"
PLAIN = {name: text for name, text in process_environment().items() if name in ("PATH", "HOME")}
READY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The programs that a language needs, and the command of its example."""

    name: str
    needs: tuple[str, ...]
    command: tuple[str, ...]
    build: tuple[str, ...] | None = None

    def missing(self) -> str | None:
        """Return the first missing program."""
        return next((program for program in self.needs if shutil.which(program) is None), None)

    def make(self, place: Path) -> tuple[str, ...]:
        """Build the example; return its command without the subcommand."""
        if self.build is not None:
            build = [part.format(place=place) for part in self.build]
            env = PLAIN | {"GOCACHE": str(place / "cache"), "GOFLAGS": "-mod=mod"}
            subprocess.run(build, cwd=EXAMPLES / self.name, env=env, check=True)
        return tuple(part.format(place=place) for part in self.command)


JACKSON = str(PROJECT / ".runtime" / "kafka" / "*")
LANGUAGES = (
    Language(
        name="go",
        needs=("go",),
        build=("go", "build", "-o", "{place}/check-endpoint", "."),
        command=("{place}/check-endpoint",),
    ),
    Language(
        name="java",
        needs=("java", "javac"),
        build=(
            *("javac", "-Xlint:all", "-Werror", "-cp", JACKSON, "-d", "{place}"),
            *("CheckEndpoint.java", "Signature.java"),
        ),
        command=("java", "-XX:TieredStopAtLevel=1", "-cp", "{place}:" + JACKSON, "CheckEndpoint"),
    ),
    Language(
        name="node",
        needs=("node",),
        command=("node", str(EXAMPLES / "node" / "check-endpoint.mjs")),
    ),
    Language(
        name="shell",
        needs=("bash", "openssl", "jq"),
        command=("bash", str(EXAMPLES / "shell" / "check-endpoint.sh")),
    ),
)


def verifies(command: Sequence[str], vector: Mapping[str, object]) -> bool:
    """Run the example's verifier on one vector."""
    given = [str(vector[name]) for name in ("secret", "id", "timestamp", "signatures", "now")]
    body = str(vector["body"]).encode()
    done = subprocess.run([*command, "verify", *given], input=body, env=PLAIN, check=False)
    assert done.returncode in (0, 1)
    return done.returncode == 0


@contextmanager
def serving(language: Language, command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Run the example's endpoint; yield its URL."""
    if language.name == "shell":
        with _cgi_server(command, PLAIN | dict(env)) as url:
            yield url
        return
    (port,) = free_ports(1)
    process = subprocess.Popen([*command, "serve"], env=PLAIN | dict(env) | {"PORT": str(port)})
    url = f"http://127.0.0.1:{port}/outbox/check"
    try:
        wait_for(lambda: _answers(url), seconds=READY_SECONDS)
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx2.post(url, content=b"", trust_env=False).status_code == 401
    except httpx2.TransportError:
        return False


@contextmanager
def _cgi_server(command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """Serve a CGI program (RFC 3875): the headers in its environment, the body on its stdin."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {
                "HTTP_" + name.upper().replace("-", "_"): text
                for name, text in self.headers.items()
            }
            length = {"CONTENT_LENGTH": str(len(body))}
            done = subprocess.run(
                command, input=body, env={**env, **headers, **length}, stdout=-1, check=True
            )
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            status, content_type = head.decode().split("\r\n")
            self.send_response(int(status.removeprefix("Status: ")))
            self.send_header(*content_type.split(": ", 1))
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/outbox/check"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
