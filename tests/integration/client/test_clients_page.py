"""What docs/clients.md tells other languages is true: its SQL, its shell line, its vector."""

import re
import subprocess
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import errors
from standardwebhooks import Webhook

from outbox_client import LocalTransactionState
from outbox_client.psycopg import CREATE_TABLE, PsycopgBarrier
from tests.integration.client.test_barrier import make_check, make_prepared
from tests.places import PROJECT

PAGE = (PROJECT / "docs" / "clients.md").read_text()
SQL = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", PAGE, re.DOTALL))
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]
VECTOR = dict(re.findall(r"^(secret|id|timestamp|body|signature) +(.*)$", PAGE, re.MULTILINE))

IDS = ("billing", "m-1")


def run(connection: psycopg.Connection[object], name: str) -> None:
    """Run a block of the page, statement by statement, with the two ids where it asks for them."""
    for statement in SQL[name].split(";"):
        literal = statement.replace("$1", f"'{IDS[0]}'").replace("$2", f"'{IDS[1]}'")
        if literal.strip():
            connection.execute(literal.encode())


def outcome(connection: psycopg.Connection[object]) -> object:
    literal = SQL["read"].replace("$1", f"'{IDS[0]}'").replace("$2", f"'{IDS[1]}'")
    row = connection.execute(literal.encode()).fetchone()
    return row[0] if isinstance(row, tuple) else None


@pytest.mark.postgres
def test_the_plain_sql_fences_a_message_that_was_not_recorded(local_database: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as connection:
        run(connection, "create")
        run(connection, "fence")
        assert outcome(connection) == "fenced"
        with pytest.raises(errors.UniqueViolation):
            run(connection, "record")


@pytest.mark.postgres
def test_the_plain_sql_and_the_client_share_one_table(local_database: str) -> None:
    with psycopg.connect(local_database, autocommit=True) as connection:
        run(connection, "create")
        run(connection, "record")
        run(connection, "fence")
        assert outcome(connection) == "committed"
        answer = PsycopgBarrier().check(connection, make_check())
        assert answer == LocalTransactionState.COMMIT


@pytest.mark.postgres
def test_the_plain_fence_does_not_wait_for_ever(local_database: str) -> None:
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
