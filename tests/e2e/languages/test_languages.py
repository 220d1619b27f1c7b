"""The services in Go, Java and Node: prepare, local transaction, end, check and barrier."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx2
import psycopg
import pytest

from devservers.loopback import free_ports
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import (
    LANGUAGES,
    PLAIN,
    Language,
    redirecting,
    serving,
    verifies,
)
from tests.fixtures_databases import with_database
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for
from tests.unit.outbox_client.fixtures_checks import batch, make_check, signed_headers

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

VECTORS = json.loads((PROJECT / "docs/schemas/check-vectors.json").read_text("utf-8"))["vectors"]
TOPIC = "invoices.issued"
PAGE = (PROJECT / "docs" / "clients.md").read_text("utf-8")
RECORD = (
    "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (%s, %s, 'committed')"
)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
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
        return self.run("issue", str(number), *more)

    def run(
        self, *arguments: str, without: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a subcommand to its end, without a variable or with more of them."""
        environment = PLAIN | self.environment | more
        return subprocess.run(
            self.language.command(*arguments),
            cwd=self.place,
            env={name: text for name, text in environment.items() if name != without},
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
        "OUTBOX_API_URL": service.facts()["api_url"],
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


def prepared(billing: Billing, service: Service, invoice: str) -> str:
    """Prepare an invoice as a process does that dies then; return the message's id."""
    named = {"transaction_id": f"invoice-{invoice}", "key": "cust-58"}
    value = f'{{"invoice":{invoice.partition("/")[0]}}}'
    return service.prepare(billing.group, TOPIC, value=value, **named)


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


def test_a_redirected_prepare_is_no_prepare_and_stores_no_invoice(billing: Billing) -> None:
    """Clients repeat a redirected POST as a GET: the list of messages is answered with 200."""
    number = next(_NUMBERS)
    with redirecting(billing.environment["OUTBOX_API_URL"]) as api:
        done = billing.run("issue", str(number), OUTBOX_API_URL=api)
    assert billing.invoices(number) == 0
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "301" in done.stderr


def test_an_order_that_a_check_has_rolled_back_is_issued_under_a_new_transaction_id(
    billing: Billing, service: Service
) -> None:
    """Two processes died before their local transaction; the fourth reads the row of the third."""
    number = next(_NUMBERS)
    message_id = prepared(billing, service, str(number))
    assert service.wait_state(message_id, "ROLLED_BACK")["decided_by"] == "check"
    with pytest.raises(psycopg.errors.UniqueViolation):
        billing.rows(RECORD, billing.group, message_id)
    service.end(prepared(billing, service, f"{number}/2"), "ROLLBACK")
    third, fourth = billing.issue(number), billing.issue(number)
    assert json.loads(third.stdout)["state"] == "PUBLISHED", third.stderr
    assert (fourth.returncode, fourth.stdout) == (0, f"invoice {number} is stored\n"), fourth.stderr
    assert billing.invoices(number) == 1
    seen = [dict(each.headers).get("outbox_transaction_id", "") for each in service.records(TOPIC)]
    assert [each for each in seen if str(number) in each] == [f"invoice-{number}/3"]


def test_the_endpoint_passes_every_case_of_the_kit_as_the_page_calls_it(billing: Billing) -> None:
    (printed,) = re.findall(r"^(OUTBOX_CHECK_SECRET=.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    command = printed.replace("--group billing", f"--group {billing.group}")
    command = command.replace("http://127.0.0.1:9000/outbox/check", billing.check_url)
    done = subprocess.run(
        ["bash", "-euc", f"{command} --within 30 --quiet"],
        env=PLAIN | {"CHECK_SECRET": billing.environment["CHECK_SECRET"]},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    rows = json.loads(done.stdout)
    assert len(rows) > 10
    assert [row for row in rows if not row["passed"]] == []
    assert done.returncode == 0


def test_checks_of_a_batch_wait_for_open_local_transactions_together(billing: Billing) -> None:
    """One after the other they would need longer than the outbox waits for the whole batch."""
    ids = [f"open-{number}" for number in range(3)]
    body = batch(*(make_check(each, producer_group=billing.group) for each in ids))
    headers = signed_headers(body, billing.environment["CHECK_SECRET"])
    with ExitStack() as local, ThreadPoolExecutor(1) as thread:
        for each in ids:
            connection = local.enter_context(psycopg.connect(billing.environment["DATABASE_URL"]))
            connection.execute(RECORD, [billing.group, each])
        asked = thread.submit(
            httpx2.post, billing.check_url, content=body, headers=headers, timeout=60
        )
        wait_for(lambda: billing.rows(WAITING) == [(len(ids),)], every=0.01)
        verdicts = asked.result().json()["verdicts"]
    assert [each["decision"] for each in verdicts] == ["UNKNOWN"] * len(ids)


def test_the_verifier_agrees_with_every_vector(billing: Billing) -> None:
    command = billing.language.command("verify")
    results = {each["name"]: verifies(command, each, billing.place) for each in VECTORS}
    assert results == {each["name"]: each["verifies"] for each in VECTORS}
