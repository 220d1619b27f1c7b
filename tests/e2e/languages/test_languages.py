"""The services in Go, Java and Node: prepare, local transaction, end, check and barrier."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from devservers.ports import free_ports
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import LANGUAGES, PLAIN, Language, serving, verifies
from tests.fixtures_databases import with_database
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

VECTORS = json.loads((PROJECT / "docs/schemas/check-vectors.json").read_text("utf-8"))["vectors"]
TOPIC = "invoices.issued"
PAGE = (PROJECT / "docs" / "languages.md").read_text("utf-8")
SILENT = 20
_NUMBERS = count(8001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """A built service with a database, a group, and a running check endpoint."""

    language: Language
    place: Path
    group: str
    environment: dict[str, str]
    check_url: str

    def issue(self, number: int, *more: str) -> subprocess.CompletedProcess[str]:
        """Issue an invoice; with ``forget`` the process ends before the end."""
        return subprocess.run(
            self.language.command("issue", str(number), *more),
            cwd=self.place,
            env=PLAIN | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def rows(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        """Run a query on the service's database."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            return connection.execute(statement, parameters).fetchall()

    def invoices(self, number: int) -> int:
        """Return how often an invoice is stored."""
        return len(self.rows("SELECT 1 FROM invoice WHERE number = %s", number))


@pytest.fixture(scope="module", params=LANGUAGES, ids=lambda language: language.name)
def billing(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Billing]:
    """Build the service of a language and serve its checks, or skip and name what is missing."""
    language: Language = request.param
    missing = language.missing()
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")
    place = language.make(tmp_path_factory.mktemp("billing"))
    (port,) = free_ports(1)
    group, check_url = f"billing-{language.name}", f"http://127.0.0.1:{port}/outbox/check"
    environment = {
        "API": service.facts()["api_url"],
        "DATABASE_URL": _new_database(service, f"billing_{language.name}"),
        "PRODUCER_GROUP": group,
        "CHECK_SECRET": _register(service, group, check_url),
    }
    with serving(language.command("serve"), place, environment, port):
        yield Billing(
            language=language,
            place=place,
            group=group,
            environment=environment,
            check_url=check_url,
        )


def _new_database(service: Service, name: str) -> str:
    url = str(service.facts()["database_url"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return with_database(url, name)


def _register(service: Service, group: str, check_url: str) -> str:
    fields = {"check_url": check_url, "transaction_timeout_seconds": 1, "check_interval_seconds": 1}
    answer = service.http.put(f"/v1/producer-groups/{group}", json=fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["check_secret"])


def test_the_page_names_a_database_that_there_is(service: Service, tmp_path: Path) -> None:
    (tmp_path / ".outbox-dev").symlink_to(service.data_dir)
    readme = (PROJECT / "README.md").read_text("utf-8")
    (json_reader,) = re.findall(r"^json\(\) .*$", readme, re.MULTILINE)
    (named,) = re.findall(r"^ *(export DATABASE_URL=.*)$", PAGE, re.MULTILINE)
    done = subprocess.run(
        ["bash", "-euc", f'{json_reader}\n{named}\nprintf %s "$DATABASE_URL"'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == service.facts()["database_url"], done.stderr


def test_every_part_that_the_page_names_is_a_file_of_its_language() -> None:
    table = PAGE[PAGE.index("## What is where") : PAGE.index("## What to keep")]
    folders = [PROJECT / "examples" / name for name in ("go", "java/src", "node")]
    rows = [line.split(" | ")[1:4] for line in table.splitlines() if line.startswith("| ")][1:]
    files = [
        (folder / cell.strip("`"))
        for row in rows
        for folder, cell in zip(folders, row, strict=True)
    ]
    assert len(files) == 15
    assert [file for file in files if not file.is_file()] == []


def test_the_page_shows_how_the_service_is_built_and_run(billing: Billing) -> None:
    assert f"\n{billing.language.build}\n" in PAGE
    assert f"\n{billing.language.run} issue 7731\n" in PAGE
    assert f"\n{billing.language.run} serve\n" in PAGE


def test_an_issued_invoice_is_stored_and_becomes_one_record(
    billing: Billing, service: Service
) -> None:
    number = next(_NUMBERS)
    done = billing.issue(number)
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert (ended["state"], ended["publication"]["topic"]) == ("PUBLISHED", TOPIC)
    assert billing.invoices(number) == 1
    value = json.dumps({"invoice": number}, separators=(",", ":")).encode()
    assert [each.value for each in service.records(TOPIC)].count(value) == 1


def test_an_invoice_without_an_end_is_committed_by_a_check(
    billing: Billing, service: Service
) -> None:
    number = next(_NUMBERS)
    done = billing.issue(number, "forget")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert billing.invoices(number) == 1
    ((message_id,),) = billing.rows(
        "SELECT message_id FROM outbox_barrier ORDER BY created_at DESC LIMIT 1"
    )
    assert service.wait_state(str(message_id), "PUBLISHED")["decided_by"] == "check"


def test_a_message_that_a_check_has_rolled_back_lets_no_late_invoice_commit(
    billing: Billing, service: Service
) -> None:
    number = next(_NUMBERS)
    named = {"transaction_id": f"invoice-{number}", "key": "cust-58"}
    value = json.dumps({"invoice": number}, separators=(",", ":"))
    message_id = service.prepare(billing.group, TOPIC, value=value, **named)
    assert service.wait_state(message_id, "ROLLED_BACK")["decided_by"] == "check"
    late = billing.issue(number)
    assert late.returncode != 0
    assert "already-ended" in late.stderr
    with psycopg.connect(billing.environment["DATABASE_URL"]) as local:
        local.execute("INSERT INTO invoice VALUES (%s)", [number])
        with pytest.raises(psycopg.errors.UniqueViolation):
            local.execute(
                "INSERT INTO outbox_barrier (producer_group, message_id, outcome)"
                " VALUES (%s, %s, 'committed')",
                [billing.group, message_id],
            )
    assert billing.invoices(number) == 0


def test_the_endpoint_passes_every_case_of_the_kit(billing: Billing) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "cli", "-o", "json", "--quiet", "check", "simulate"),
            *("--url", billing.check_url, "--producer-group", billing.group),
            *("--batch", "--within", "30"),
        ],
        env=PLAIN | {"OUTBOX_CHECK_SECRET": billing.environment["CHECK_SECRET"]},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert [row for row in json.loads(done.stdout) if not row["passed"]] == []
    assert done.returncode == 0


def test_connections_that_send_nothing_stop_checks_for_seconds_only(billing: Billing) -> None:
    place = urlsplit(billing.check_url)
    head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as silent:
        for _ in range(SILENT):
            address = (place.hostname or "", place.port or 0)
            connection = silent.enter_context(socket.create_connection(address))
            connection.sendall(head.encode())
        statuses = wait_for(lambda: asked(billing.check_url))
    assert statuses == [401]


def asked(check_url: str) -> list[int]:
    """Return the status of a check without a signature; nothing if the connection was closed."""
    try:
        return [httpx2.post(check_url, content=b"", trust_env=False, timeout=30).status_code]
    except httpx2.TransportError:
        return []


def test_the_verifier_agrees_with_every_vector(billing: Billing) -> None:
    command = billing.language.command("verify")
    results = {each["name"]: verifies(command, each, billing.place) for each in VECTORS}
    assert results == {each["name"]: each["verifies"] for each in VECTORS}
