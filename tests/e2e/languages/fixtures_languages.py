"""The example services in other languages: build, verify, issue and serve commands."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from outbox.settings.environment import process_environment
from tests.fixtures_http_server import QuietHandler, http_server
from tests.fixtures_paths import PROJECT
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

EXAMPLES = PROJECT / "examples"
PLAIN = {name: text for name, text in process_environment().items() if name in ("PATH", "HOME")}
QUICK_BUILD = {"GOFLAGS": "-gcflags=all=-N", "CGO_ENABLED": "0"}
"""The first build compiles Go's library as well: without optimization, and without C."""
READY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The programs that a language needs, how its service is built, and how it is run.

    The commands are those of docs/clients.md; a test holds them equal.
    """

    name: str
    needs: tuple[str, ...]
    build: str
    run: str

    def missing(self) -> str | None:
        """Return the first missing program."""
        return next((program for program in self.needs if shutil.which(program) is None), None)

    def make(self, place: Path) -> Path:
        """Build a copy of the service in a folder; return the copy."""
        copy = place / self.name
        hidden = shutil.ignore_patterns("node_modules", "target", "billing")
        shutil.copytree(EXAMPLES / self.name, copy, ignore=hidden)
        done = subprocess.run(
            ["bash", "-euc", self.build],
            cwd=copy,
            env={**process_environment(), **QUICK_BUILD},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return copy

    def command(self, *arguments: str) -> list[str]:
        """Return the command of a subcommand, to be run in the built copy."""
        return ["bash", "-euc", f'exec {self.run} "$@"', "bash", *arguments]


LANGUAGES = (
    Language(
        name="go",
        needs=("go",),
        build="go build -buildvcs=false -o billing .",
        run="./billing",
    ),
    Language(
        name="java",
        needs=("java", "javac", "mvn"),
        build="mvn -q -B compile dependency:copy-dependencies",
        run="java -cp 'target/classes:target/dependency/*' Billing",
    ),
    Language(
        name="node",
        needs=("node", "npm"),
        build="npm ci --silent",
        run="node billing.mjs",
    ),
)


def verifies(command: Sequence[str], vector: Mapping[str, object], place: Path) -> bool:
    """Run a verifier (without its arguments) on one vector."""
    given = [str(vector[name]) for name in ("secret", "id", "timestamp", "signatures", "now")]
    body = str(vector["body"]).encode()
    done = subprocess.run([*command, *given], input=body, env=PLAIN, cwd=place, check=False)
    assert done.returncode in (0, 1)
    return done.returncode == 0


@contextmanager
def serving(
    command: Sequence[str], place: Path, env: Mapping[str, str], port: int
) -> Iterator[str]:
    """Run an endpoint until the block ends; yield its URL."""
    process = subprocess.Popen(command, cwd=place, env=PLAIN | dict(env) | {"PORT": str(port)})
    url = f"http://127.0.0.1:{port}/outbox/check"
    try:
        wait_for(lambda: process.poll() is not None or _answers(url), seconds=READY_SECONDS)
        assert process.poll() is None, "the endpoint has ended"
        yield url
    finally:
        process.kill()
        process.wait()


def redirecting(url: str) -> AbstractContextManager[str]:
    """Redirect every request, as a proxy does that asks for another scheme or name."""

    class Redirect(QuietHandler):
        def serve(self) -> None:
            self.body()
            self.answer(b"", 301, location=f"{url}{self.path}")

    return http_server(Redirect)


def _answers(url: str) -> bool:
    try:
        return httpx2.post(url, content=b"", trust_env=False, verify=NO_TLS).status_code == 401
    except httpx2.TransportError:
        return False
