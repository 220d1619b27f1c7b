"""Each client answers checks as docs/check-endpoint.md and docs/barrier.md say."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import time
from typing import Any

import psycopg
import pytest

from tests.e2e.languages.fixtures_languages import DRIVEN, PLAIN
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for
from tests.integration.client.conformance.fixtures_drivers import Driver
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    OTHER_SECRET,
    SECRET,
    batch,
    make_check,
    signature,
    signed_headers,
    single,
)

pytestmark = pytest.mark.postgres

EDGE = range(290, 310)
"""Ages, in seconds, at which a vector would depend on the second in which it arrives."""
FILE = PROJECT / "docs/schemas/check-vectors.json"
VECTORS = [
    each
    for each in json.loads(FILE.read_text("utf-8"))["vectors"]
    if not each["timestamp"].isdigit() or abs(int(each["timestamp"]) - each["now"]) not in EDGE
]
PAGE = (PROJECT / "docs" / "clients.md").read_text("utf-8")
RECORD = (
    "INSERT INTO outbox_barrier (producer_group, message_id, outcome) VALUES (%s, %s, 'committed')"
)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def headers_now(vector: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a vector as if its time were the present, with a signature of it."""
    timestamp, signatures = vector["timestamp"], vector["signatures"]
    if timestamp.isdigit():
        signed = (vector["body"].encode(), vector["id"])
        was = signature(*signed, int(timestamp), SECRET).removeprefix("v1,")
        timestamp = str(int(time()) + int(timestamp) - vector["now"])
        now = signature(*signed, int(timestamp), SECRET).removeprefix("v1,")
        signatures = signatures.replace(was, now)
    return {
        "webhook-id": vector["id"],
        "webhook-timestamp": timestamp,
        "webhook-signature": signatures,
    }


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_check_is_read_if_and_only_if_its_signature_fits(
    driver: Driver, vector: Mapping[str, Any]
) -> None:
    answer = driver.check(vector["body"].encode(), headers_now(vector), verdict="COMMIT")
    assert (answer.status_code != 401) == vector["verifies"]


@pytest.mark.parametrize("verdict", ["COMMIT", "ROLLBACK", "UNKNOWN", "raise", "nonsense"])
def test_what_the_service_decides_is_answered_and_every_doubt_is_unknown(
    driver: Driver, verdict: str
) -> None:
    known = verdict if verdict in ("COMMIT", "ROLLBACK") else "UNKNOWN"
    one = driver.check(single(make_check("m-1")), verdict=verdict).json()
    two = driver.check(batch(make_check("m-1"), make_check("m-2")), verdict=verdict).json()
    found = [(each["message_id"], each["decision"]) for each in (one, *two["verdicts"])]
    assert found == [("m-1", known), ("m-1", known), ("m-2", known)]


FOREIGN = batch(make_check("m-1"), make_check("m-2", producer_group="other"))


@pytest.mark.parametrize(
    ("body", "secret", "status"),
    [
        (FOREIGN, SECRET, 403),
        (FOREIGN, OTHER_SECRET, 401),
        (b"{}", SECRET, 400),
        (b"not JSON", SECRET, 400),
        (b"not JSON", OTHER_SECRET, 401),
        (batch(), SECRET, 400),
    ],
)
def test_the_signature_is_verified_before_anything_else_is_read(
    driver: Driver, body: bytes, secret: str, status: int
) -> None:
    headers = signed_headers(body, secret)
    assert driver.check(body, headers, verdict="COMMIT").status_code == status


def test_the_endpoint_passes_every_case_of_the_command_on_the_page(driver: Driver) -> None:
    (command,) = re.findall(r"^(OUTBOX_CHECK_SECRET=.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    url = driver.serve(verdict="ROLLBACK")
    command = command.replace("http://127.0.0.1:9000/outbox/check", url)
    done = subprocess.run(
        ["bash", "-euc", f"{command} --within 30 --quiet"],
        env=PLAIN | {"CHECK_SECRET": SECRET},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    rows = json.loads(done.stdout)
    assert len(rows) > 10
    assert [row for row in rows if not row["passed"]] == []


PAIRS = [
    pytest.param(name, kind, marks=pytest.mark.deep)
    for name, language in DRIVEN.items()
    for kind in language.databases
]
POSTGRESQL = [pytest.param(name, "postgresql", marks=pytest.mark.deep) for name in DRIVEN]
each_database = pytest.mark.parametrize(("driver", "database"), PAIRS, indirect=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
Database = dict[str, str]


def decision(driver: Driver, database: Database, message_id: str, **check: object) -> str:
    """Ask about a message; return the decision."""
    body = single(make_check(message_id, **check))
    return str(driver.check(body, database=database).json()["decision"])


@each_database
def test_a_check_decides_by_the_row_of_the_local_transaction_and_fences_its_absence(
    driver: Driver, database: Database
) -> None:
    recorded = {"database": database, "message_id": "m-1"}
    assert driver.ask("record", **recorded) == {"outcome": "recorded"}
    assert decision(driver, database, "m-1") == "COMMIT"
    assert decision(driver, database, "m-2") == "ROLLBACK"
    fenced = {"database": database, "message_id": "m-2"}
    assert driver.ask("record", **fenced) == {"outcome": "fenced"}
    assert decision(driver, database, "m-2") == "ROLLBACK"


@each_database
def test_a_message_whose_row_may_have_been_purged_is_unknown(
    driver: Driver, database: Database
) -> None:
    assert "7 days" in driver.ask("purge", database=database, days=6)["error"]
    assert driver.ask("purge", database=database, days=7) == {"deleted": 0}
    assert decision(driver, database, "m-1", prepared_at="2026-01-01T00:00:00Z") == "UNKNOWN"
    assert decision(driver, database, "m-2", prepared_at="2099-01-01T00:00:00Z") == "ROLLBACK"


@pytest.mark.parametrize(("driver", "database"), POSTGRESQL, indirect=True)
def test_a_purge_deletes_old_rows_and_its_mark_stays(driver: Driver, database: Database) -> None:
    driver.ask("record", database=database, message_id="m-1")
    with psycopg.connect(database["url"]) as connection:
        connection.execute("UPDATE outbox_barrier SET created_at = '2026-01-01'")
    driver.ask("record", database=database, message_id="m-2")
    found = [driver.ask("purge", database=database, days=7)["deleted"] for _ in range(2)]
    assert found == [1, 0]
    assert decision(driver, database, "m-2") == "COMMIT"


@on_postgresql
def test_a_check_waits_for_an_open_local_transaction_and_reads_after_its_commit(
    driver: Driver, database: Database
) -> None:
    decision(driver, database, "m-0")
    with psycopg.connect(database["url"]) as local, ThreadPoolExecutor(1) as thread:
        local.execute(RECORD, [GROUP, "m-1"])
        asked = thread.submit(decision, driver, database, "m-1")
        wait_for(lambda: waiting(database) == 1, every=0.01)
        local.commit()
        assert asked.result() == "COMMIT"


@on_postgresql
def test_checks_of_a_batch_wait_for_open_local_transactions_together(
    driver: Driver, database: Database
) -> None:
    """One after the other they would need longer than the service waits for the whole batch."""
    decision(driver, database, "m-0")
    ids = [f"open-{number}" for number in range(3)]
    body = batch(*(make_check(each) for each in ids))
    with ExitStack() as local, ThreadPoolExecutor(1) as thread:
        for each in ids:
            connection = local.enter_context(psycopg.connect(database["url"]))
            connection.execute(RECORD, [GROUP, each])
        asked = thread.submit(driver.check, body, database=database)
        wait_for(lambda: waiting(database) == len(ids), every=0.01)
        verdicts = asked.result().json()["verdicts"]
    assert [each["decision"] for each in verdicts] == ["UNKNOWN"] * len(ids)


def waiting(database: Database) -> int:
    """Return how many sessions wait for a lock."""
    with psycopg.connect(database["url"]) as connection:
        row = connection.execute(WAITING).fetchone()
    return int(row[0]) if row else 0
