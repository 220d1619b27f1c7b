"""The clients in other languages with their examples and drivers: how they are built and run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psycopg

from outbox.settings.environment import process_environment
from tests.e2e.fixtures_service import Service
from tests.fixtures_databases import with_database
from tests.fixtures_paths import PROJECT
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

PLAIN = {name: text for name, text in process_environment().items() if name in ("PATH", "HOME")}
QUICK_BUILD = {"GOFLAGS": "-gcflags=all=-N", "CGO_CFLAGS": "-O0"}
"""The first build compiles Go's library and SQLite as well: without optimization."""
READY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The programs that a language needs, its sources with a README, and its example.

    ``build`` is typed in the folder of the example, and in that of the driver for the conformance
    kit; ``drive`` runs the latter.
    """

    name: str
    needs: tuple[str, ...]
    source: str
    example: str
    build: str
    databases: tuple[str, ...] = ()
    drive: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Return the first missing program."""
        return next((program for program in self.needs if shutil.which(program) is None), None)

    def make(self, place: Path, folder: str) -> Path:
        """Build the example or the driver in a copy of the sources; return its folder.

        A later build in the same place does only what is new.
        """
        hidden = shutil.ignore_patterns("node_modules", "target", "billing")
        copy = place / self.name
        shutil.copytree(PROJECT / self.source, copy, ignore=hidden, dirs_exist_ok=True)
        copy /= folder
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


LANGUAGES = (
    Language(
        name="go",
        needs=("go", "gcc"),
        source="clients/go",
        example="example",
        build="go build -buildvcs=false -o billing .",
        databases=("postgresql", "mysql", "sqlite"),
        drive=("./billing",),
    ),
    Language(
        name="java",
        needs=("java", "javac", "mvn"),
        source="clients/java",
        example="example",
        build="mvn -q -B -f .. package dependency:copy-dependencies",
        databases=("postgresql", "mysql"),
        drive=("java", "-cp", "target/classes:target/dependency/*", "outbox.conformance.Driver"),
    ),
    Language(
        name="node",
        needs=("node", "npm"),
        source="clients/node",
        example="example",
        build="npm ci --silent",
        databases=("postgresql", "mysql"),
        drive=("node", "driver.mjs"),
    ),
)

DRIVEN = {language.name: language for language in LANGUAGES if language.drive}


def new_database(service: Service, name: str) -> dict[str, str]:
    """Create a database; return its address as a service's environment, for JDBC as well."""
    url = str(service.facts()["database_url"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = with_database(url, name)
    jdbc = re.sub(".*//(.*):(.*)@(.*)", r"jdbc:postgresql://\3?user=\1&password=\2", url)
    return {"DATABASE_URL": url, "JDBC_URL": jdbc}


def register(service: Service, group: str, check_url: str) -> str:
    """Register a group whose first check comes after a second; return its secret."""
    fields = {"check_url": check_url, "transaction_timeout_seconds": 1, "check_interval_seconds": 1}
    answer = service.http.put(f"/v1/producer-groups/{group}", json=fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["check_secret"])


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


def _answers(url: str) -> bool:
    try:
        return httpx2.post(url, content=b"", trust_env=False, verify=NO_TLS).status_code == 401
    except httpx2.TransportError:
        return False
