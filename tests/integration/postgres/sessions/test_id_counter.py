"""Programs refuse a database whose stored ids are above what its cluster would issue next."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import psycopg
import pytest

from benchmarks.load.committed import commit_directly, register
from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from outbox.errors import DatabaseUnavailable, IdsBehind
from outbox.postgres.maintenance.readiness import PostgresReadiness
from outbox.postgres.operators import installation_admin
from outbox.postgres.sessions.connections import connect, make_pool
from outbox.postgres.sessions.verified_sessions import (
    connect_verified,
    refuse_ids_behind,
    refuse_pool_behind,
)
from tests.fixtures_programs import program

pytestmark = pytest.mark.postgres

COMMAND = "outbox installation rebase --reason TEXT"
FAR = 1 << 34
"""A transaction id that no test's cluster reaches."""
HALF = FAR << 15
STORED = "ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position"
AHEAD = {
    "position": f"INSERT INTO outbox.progress (name, position) VALUES ('relay:3', {FAR}) {STORED}",
    "sweep": f"INSERT INTO outbox.progress (name, position) VALUES ('sweep', {HALF}) {STORED}",
    "check cursor": f"INSERT INTO outbox.check_class VALUES (1, 30, {HALF})",
    "check queue": "INSERT INTO outbox.check_class VALUES (1, 30, 0);"
    f" INSERT INTO outbox.check_queue VALUES (1, 30, {HALF}, 1, 1, 0, true, now(), now())",
    "half": "INSERT INTO outbox.half_message (half_id, nonce, prepared_at, content_digest,"
    f" producer_group_id, topic_id) VALUES ({HALF}, 1, now(), 0, 1, 1)",
    "commit log": f"INSERT INTO outbox.commit_log VALUES (9, {FAR}, now(), '{{1}}', '{{1}}')",
    "plain": "INSERT INTO outbox.plain_message (half_id, nonce, producer_group_id, topic_id)"
    f" VALUES ({HALF}, 1, 1, 1)",
}
BASE = "SELECT base FROM outbox.installation"
AUDITED = "SELECT count(*) FROM outbox.audit_log WHERE action = 'installation.rebase'"
RAISE_COUNTERS = str(installation_admin.SQL["raise_counters"])
GENERATED = """
SELECT array_agg(relname::text ORDER BY relname::text)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'outbox'::regnamespace AND a.attidentity <> ''
"""
REBASE = ["-o", "json", "--yes", "installation", "rebase", "--reason", "restored"]


@pytest.fixture
def behind(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a database whose relay has passed ids that its cluster has not issued yet."""
    monkeypatch.setenv("OUTBOX_DATABASE_URL", database_url)
    monkeypatch.setenv("OUTBOX_AUTH_MODE", "dev-insecure")
    monkeypatch.setenv("OUTBOX_HTTP_BIND", "127.0.0.1:0")
    monkeypatch.setenv("OUTBOX_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    with psycopg.connect(database_url) as session:
        session.execute(AHEAD["position"].encode())
    return database_url


def ask(database_url: str, question: str) -> Any:
    """Return the first row."""
    with psycopg.connect(database_url, autocommit=True) as session:
        return session.execute(question.encode()).fetchone()


@pytest.mark.parametrize("statement", AHEAD.values(), ids=list(AHEAD))
def test_any_stored_id_above_the_counter_is_refused(database_url: str, statement: str) -> None:
    with connect(database_url, "test") as session:
        refuse_ids_behind(session)
        session.execute(statement.encode())
        with pytest.raises(IdsBehind, match=COMMAND):
            refuse_ids_behind(session)


async def test_the_programs_exit_with_2_and_one_sentence(behind: str) -> None:
    for name in ("outbox-api", "outbox-checker"):
        process = await asyncio.create_subprocess_exec(
            program(name), stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            _, said = await process.communicate()
        assert (process.returncode, said.count(b"\n")) == (2, 1)
        assert COMMAND in said.decode()


async def test_a_running_api_serves_nothing_and_its_readiness_names_the_command(
    database_url: str,
) -> None:
    """The address of the database may lead to a restored one while the program runs."""
    async with make_pool(database_url, "api", pool_max=2, admit=refuse_pool_behind) as pool:
        readiness = PostgresReadiness(pool, "0001")
        assert (await readiness.checks())["postgres"] == "ok"
        ask_nothing(database_url, AHEAD["position"])
        ask_nothing(
            database_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'outbox-api' AND datname = current_database()",
        )
        async with asyncio.timeout(60):
            while COMMAND not in (await readiness.checks())["postgres"]:
                pass
        ask_nothing(database_url, "DELETE FROM outbox.progress")
        async with asyncio.timeout(60):
            while (await readiness.checks())["postgres"] != "ok":
                pass


def ask_nothing(database_url: str, statement: str) -> None:
    """Execute a statement."""
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute(statement.encode())


def test_a_relay_opens_no_session(behind: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=COMMAND):
        connect_verified(behind, "relay-3")


def test_a_rebase_raises_new_ids_above_stored_ones_into_leaves_that_exist(
    behind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (base,), (audits,) = ask(behind, BASE), ask(behind, AUDITED)
    (unplaced,) = ask(behind, "SELECT count(*) FROM outbox.half_message_default")
    ask_nothing(
        behind,
        "INSERT INTO outbox.already_published (half_id, nonce, shard, manifest_offset)"
        f" VALUES ({HALF + (5 << 35)}, 1, 3, 0)",
    )
    assert run(REBASE) == ExitCode.OK
    done = json.loads(capsys.readouterr().out)
    assert (done["was"], done["highest"]) == (base, FAR)
    with connect(behind, "test") as session:
        refuse_ids_behind(session)
        (half_id,) = commit_directly(session, [register(session, "topic")])
    assert half_id > HALF + (5 << 35)
    assert ask(behind, "SELECT count(*) FROM outbox.half_message_default") == (unplaced,)
    audited = ask(
        behind,
        "SELECT action, reason, (detail->>'now')::int8 FROM outbox.audit_log"
        " ORDER BY id DESC LIMIT 1",
    )
    assert audited == ("installation.rebase", "restored", done["now"])
    assert run(REBASE) == ExitCode.OK
    assert (ask(behind, BASE), ask(behind, AUDITED)) == ((done["now"],), (audits + 1,))


def test_a_rebase_raises_every_counter_of_generated_keys(behind: str) -> None:
    """Logical replication copies rows and no counters: the next key would be a stored one."""
    ask_nothing(
        behind,
        "INSERT INTO outbox.topic (id, name) OVERRIDING SYSTEM VALUE VALUES (700, 'replicated')",
    )
    assert run(REBASE) == ExitCode.OK
    topic = "INSERT INTO outbox.topic (name) VALUES ('new') RETURNING id"
    assert ask(behind, topic) == (701,)
    raised = set(re.findall(r"pg_get_serial_sequence\('outbox.(\w+)'", RAISE_COUNTERS))
    assert ask(behind, GENERATED) == (sorted(raised),)


@pytest.mark.parametrize(
    ("statement", "application"),
    [
        ("SELECT pg_advisory_lock(1869968482, 3)", "outbox-relay-3"),
        ("SELECT 1", "outbox-api"),
        ("SELECT outbox.current_xid()", "shop"),
    ],
    ids=["a relay has a shard", "an API is connected", "a producer's transaction is open"],
)
def test_a_rebase_is_refused_while_the_database_is_in_use(
    behind: str, statement: str, application: str
) -> None:
    base = ask(behind, BASE)
    with psycopg.connect(behind, application_name=application) as other:
        other.execute(statement.encode())
        assert run(REBASE) == ExitCode.CONFLICT
    assert ask(behind, BASE) == base
    assert run(["installation", "rebase", "--reason", " "]) == ExitCode.USAGE
