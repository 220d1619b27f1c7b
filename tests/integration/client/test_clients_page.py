"""The SQL, the shell line and vector of docs/barrier.md and docs/check-endpoint.md are correct."""

import asyncio
import hmac
import json
import re
import subprocess
from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from psycopg import errors
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from standardwebhooks import Webhook

import outbox_client
from outbox.http_checks.request import check_request
from outbox_client import LocalTransactionState
from outbox_client.psycopg import CREATE_TABLE, PsycopgBarrier
from tests.fixtures_messages import make_group
from tests.fixtures_paths import PROJECT
from tests.integration.client.fixtures_contract_server import ContractService
from tests.integration.client.fixtures_prepared import make_check, make_prepared
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row
from tests.unit.outbox.http_checks.fixtures_schemas import validator

ENDPOINT, BARRIER = (
    (PROJECT / "docs" / f"{page}.md").read_text("utf-8") for page in ("check-endpoint", "barrier")
)
SQL = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", BARRIER, re.DOTALL))
(SHELL,) = re.findall(r"```sh\n(key=.*?)```", ENDPOINT, re.DOTALL)
(HTTP,) = re.findall(r"```http\n(.*?)```", ENDPOINT, re.DOTALL)
JSON = re.findall(r"```json\n(.*?)```", ENDPOINT, re.DOTALL)
NAMES = "secret|id|timestamp|body|length|key|signed|hmac|signature"
VECTOR = dict(re.findall(rf"^({NAMES}) +(.*)$", ENDPOINT, re.MULTILINE))
SCHEMAS = PROJECT / "docs" / "schemas"

IDS = ("billing", "m-1")


def run(connection: psycopg.Connection[object], name: str) -> None:
    """Run a block of the page, statement by statement, with the two ids as parameters."""
    for statement in SQL[name].split(";"):
        literal = statement.replace("$1", f"'{IDS[0]}'").replace("$2", f"'{IDS[1]}'")
        if literal.strip():
            connection.execute(literal.encode())


def outcome(connection: psycopg.Connection[object]) -> object:
    literal = SQL["read"].replace("$1", f"'{IDS[0]}'").replace("$2", f"'{IDS[1]}'")
    row = connection.execute(literal.encode()).fetchone()
    return row[0] if isinstance(row, tuple) else None


@pytest.mark.postgres
def test_the_documented_sql_fences_a_message_that_was_not_recorded(local_database: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as connection:
        run(connection, "create")
        run(connection, "fence")
        assert outcome(connection) == "fenced"
        with pytest.raises(errors.UniqueViolation):
            run(connection, "record")


@pytest.mark.postgres
def test_the_documented_sql_and_the_client_share_one_table(local_database: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as connection:
        run(connection, "create")
        run(connection, "record")
        run(connection, "fence")
        assert outcome(connection) == "committed"
        answer = PsycopgBarrier().check(connection, make_check())
        assert answer == LocalTransactionState.COMMIT


@pytest.mark.postgres
def test_the_sql_fence_has_a_lock_timeout(local_database: str) -> None:
    with (
        psycopg.connect(local_database, autocommit=True) as check,
        psycopg.connect(local_database) as local,
    ):
        run(check, "create")
        PsycopgBarrier().record(local, make_prepared())
        with pytest.raises(errors.LockNotAvailable):
            run(check, "fence")


def test_the_page_shows_the_table_that_the_client_makes() -> None:
    shown = SQL["create"].replace(";", "").split()
    made = CREATE_TABLE.replace("IF NOT EXISTS ", "").split()
    assert shown == made


def test_the_examples_of_request_and_answer_fit_their_schemas() -> None:
    asked, verdict, verdicts = (json.loads(text) for text in JSON)
    validator("check-request").validate(asked)
    for answer in (verdict, verdicts):
        validator("check-answer").validate(answer)
    ids = [check["message_id"] for check in asked["data"]["checks"]]
    assert [each["message_id"] for each in verdicts["verdicts"]] == ids
    assert verdict["message_id"] == json.loads(VECTOR["body"])["data"]["message_id"]


def test_every_member_of_a_check_is_explained() -> None:
    schema = json.loads((SCHEMAS / "check-request.schema.json").read_text())
    explained = set(re.findall(r"`(\w+)`", ENDPOINT[ENDPOINT.index("## What comes") :]))
    assert schema["$defs"]["check"]["properties"].keys() <= explained


def test_the_worked_example_can_be_computed_again() -> None:
    first = json.loads((SCHEMAS / "check-vectors.json").read_text())["vectors"][0]
    assert (VECTOR["secret"], VECTOR["body"]) == (first["secret"], first["body"])
    assert (VECTOR["id"], VECTOR["timestamp"]) == (first["id"], first["timestamp"])
    body = VECTOR["body"].encode()
    key = b64decode(VECTOR["secret"].removeprefix("whsec_"))
    signed = f"{VECTOR['id']}.{VECTOR['timestamp']}.".encode() + body
    digest = hmac.digest(key, signed, "sha256")
    assert VECTOR["length"] == f"{len(body)} bytes of body, {len(signed)} bytes signed"
    assert VECTOR["key"] == f"{key.hex()} in hex"
    assert VECTOR["signed"].endswith("…")
    assert signed.decode().startswith(VECTOR["signed"].removesuffix("…"))
    assert VECTOR["hmac"] == f"{digest.hex()} in hex"
    assert VECTOR["signature"] == f"v1,{b64encode(digest).decode()}" == first["signatures"]


def test_the_request_shown_has_the_headers_of_the_vector() -> None:
    shown = dict(re.findall(r"^([a-z-]+): (.*)$", HTTP, re.MULTILINE))
    assert shown["webhook-id"] == VECTOR["id"]
    assert shown["webhook-timestamp"] == VECTOR["timestamp"]
    assert shown["webhook-signature"] == VECTOR["signature"]
    group = make_group(secrets=(VECTOR["secret"],))
    sent = check_request(group, [make_row(check_count=1)], NOW, "0" * 32)
    assert shown.keys() == sent.headers.keys()


def test_the_producer_of_the_clients_page_sends_and_answers(
    service: ContractService, service_url: str, tmp_path: Path
) -> None:
    page = (PROJECT / "docs" / "clients.md").read_text("utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {
        "outbox_url": service_url,
        "check_secret": VECTOR["secret"],
        "engine": create_engine(f"sqlite:///{tmp_path / 'account.db'}"),
        "app": FastAPI(),
        "take_100_from_the_balance": lambda db, member: db.execute(text("SELECT 1")),
    }
    exec(example, names)
    with names["producer"]:
        sent = names["buy"]("p-1", "m-1")
        (half,) = service.halves.values()
        assert (half.decision, sent.transaction_id) == ("COMMIT", "p-1")
        assert names["Payments"]().check_local_transaction(make_check()) == "ROLLBACK"


def test_the_page_of_the_client_itself_sends_and_answers(
    service: ContractService, service_url: str, tmp_path: Path
) -> None:
    page = (PROJECT / "outbox_client" / "README.md").read_text("utf-8")
    sends, answers = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {
        "check_secret": VECTOR["secret"],
        "engine": create_engine(f"sqlite:///{tmp_path / 'account.db'}"),
        "app": FastAPI(),
        "take_100_from_the_balance": text("SELECT 1"),
    }
    exec(sends.replace("http://127.0.0.1:8080", service_url), names)
    exec(answers, names)
    (half,) = service.halves.values()
    assert half.decision == "COMMIT"
    assert names["Payments"]().check_local_transaction(make_check()) == "ROLLBACK"


def test_every_page_installs_the_client_by_the_same_line() -> None:
    readme, page = (
        (PROJECT / name).read_text("utf-8") for name in ("README.md", "docs/clients.md")
    )
    (line,) = re.findall(r"^pip install (\S+)$", page, re.MULTILINE)
    assert f"pip install {line} " in readme


@pytest.mark.postgres
async def test_the_asynchronous_producer_of_the_clients_page_sends_and_answers(
    service: ContractService, service_url: str, local_database: str
) -> None:
    page = (PROJECT / "docs" / "clients.md").read_text("utf-8")
    *_, example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    async def take_100_from_the_balance(db: AsyncConnection, member: str) -> None:
        await db.execute(text("SELECT 1"))

    names: dict[str, Any] = {
        "asyncio": asyncio,
        "outbox_url": service_url,
        "check_secret": VECTOR["secret"],
        "engine": create_async_engine(local_database.replace("postgresql:", "postgresql+psycopg:")),
        "app": FastAPI(),
        "take_100_from_the_balance": take_100_from_the_balance,
    }
    exec(example, names)
    sent = await names["buy_many"]([(f"p-{number}", "m-1") for number in range(20)])
    assert [each.state for each in sent] == ["COMMITTED"] * 20
    assert {half.decision for half in service.halves.values()} == {"COMMIT"}
    check = replace(make_check(sent[0].message_id), producer_group="account-service")
    assert await names["Payments"]().check_local_transaction(check) == "COMMIT"
    await names["engine"].dispose()


def test_the_listener_of_the_migration_guide_sends_and_answers(
    service: ContractService, service_url: str
) -> None:
    page = (PROJECT / "docs" / "semantics.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    booked: set[str] = set()
    names: dict[str, Any] = {
        **vars(outbox_client),
        "outbox_url": service_url,
        "check_secret": VECTOR["secret"],
        "body": "v",
        "book": booked.add,
        "is_booked": booked.__contains__,
    }
    exec(example, names)
    with names["producer"], names["endpoint"]:
        (half,) = service.halves.values()
        assert (half.decision, names["result"].transaction_id) == ("COMMIT", *booked)
        check = names["billing"].check_local_transaction
        assert check(make_check()) == LocalTransactionState.UNKNOWN
        assert check(replace(make_check(), transaction_id=next(iter(booked)))) == "COMMIT"


def test_the_vector_is_signed_as_the_page_says() -> None:
    moment = datetime.fromtimestamp(int(VECTOR["timestamp"]), tz=UTC)
    signed = Webhook(VECTOR["secret"]).sign(VECTOR["id"], moment, VECTOR["body"])
    assert signed == VECTOR["signature"]


def test_the_shell_verifier_computes_the_vectors_signature() -> None:
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "CHECK_SECRET": VECTOR["secret"],
        "WEBHOOK_ID": VECTOR["id"],
        "WEBHOOK_TIMESTAMP": VECTOR["timestamp"],
        "BODY": VECTOR["body"],
    }
    ran = subprocess.run(
        ["sh", "-c", SHELL], env=environment, capture_output=True, text=True, check=True
    )
    assert f"v1,{ran.stdout.strip()}" == VECTOR["signature"]
