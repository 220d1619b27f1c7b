"""The examples in Go, Java and Node: prepare, local transaction, end, check and barrier."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest

from devservers.loopback import free_ports
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import (
    LANGUAGES,
    PLAIN,
    Language,
    new_database,
    register,
    serving,
)

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

TOPIC = "invoices.issued"
RECORD = (
    "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (%s, %s, 'committed')"
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
    place = language.make(tmp_path_factory.getbasetemp(), language.example)
    (port,) = free_ports(1)
    group, check_url = f"billing-{language.name}", f"http://127.0.0.1:{port}/outbox/check"
    environment = {
        "OUTBOX_API_URL": service.facts()["api_url"],
        **new_database(service, f"billing_{language.name}"),
        "PRODUCER_GROUP": group,
        "CHECK_SECRET": register(service, group, check_url),
    }
    with serving(language.command("serve"), place, environment, port):
        yield Billing(
            language=language,
            place=place,
            group=group,
            environment=environment,
            check_url=check_url,
        )


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
    service.wait_state(ended.get("message_id") or ended["messageId"], "PUBLISHED")
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
    assert json.loads(third.stdout)["state"] in ("COMMITTED", "PUBLISHED"), third.stderr
    assert (fourth.returncode, fourth.stdout) == (0, f"invoice {number} is stored\n"), fourth.stderr
    assert billing.invoices(number) == 1
    seen = [dict(each.headers).get("outbox_transaction_id", "") for each in service.records(TOPIC)]
    assert [each for each in seen if str(number) in each] == [f"invoice-{number}/3"]
