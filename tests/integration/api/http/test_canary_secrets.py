"""Secrets and payloads are seeded, then searched in every output that people or tools read.

A canary may appear only where a new key or a new check secret is returned once, and in a payload
for a caller with the scope.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from io import StringIO
from urllib.parse import urlsplit

import httpx2
import pytest
import structlog

from cli.__main__ import run
from outbox.access import ALL_GROUPS, NewApiKey, Scope
from outbox.kafka import topics
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.sessions.connections import Pool
from outbox.telemetry.events import configure_logging
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    GROUPS,
    HALVES,
    Service,
    prepare_body,
    running,
    settings_for,
)
from tests.integration.checker.fixtures_producer import Producer, status

pytestmark = pytest.mark.postgres

PEPPER = "canary-pepper-7b1f"
RING = base64.b64encode(b"canary-encryption-key-6c2e91d45a").decode()
KAFKA_PASSWORD = "canary-kafka-password-5d3a"
PAYLOAD = {
    "value": "canary-payload-value",
    "key": "canary-payload-key",
    "headers": {"tenant": "canary-payload-header"},
}
REFUSE = "ALTER TABLE outbox.half_message ADD CONSTRAINT ck_canary CHECK (tags IS NULL) NOT VALID"
BREAK = "ALTER TABLE outbox.op_message RENAME COLUMN reason TO reasons"
SETTINGS = {
    "auth_mode": "keys",
    "auth_pepper": PEPPER,
    "encryption_keys": RING,
    "kafka_config": {"sasl.password": KAFKA_PASSWORD},
    "log_level": "debug",
}


SPOILT: tuple[dict[str, object], ...] = (
    {"transaction_id": "t", "topic": "invoices.issued", "partition": 1},
    {"topic": "nowhere"},
    {"headers": {"outbox_x": "canary-payload-header"}},
    {"value": ["canary-payload-value"]},
    {"deliver_after": "canary-payload-value"},
)
READ = (
    HALVES,
    GROUPS,
    f"{GROUPS}/billing",
    "/v1/api-keys",
    "/v1/config",
    "/metrics",
    "/readyz",
    "/version",
    "/nowhere",
)


def nothing_is_shown(canaries: dict[str, str], answers: list[httpx2.Response], logs: str) -> None:
    """Search each canary in each output."""
    shown = {
        "answers": "\n".join(answer.text for answer in answers),
        "headers": "\n".join(str(answer.headers) for answer in answers),
        "logs": logs,
    }
    for place, text in shown.items():
        assert [name for name, canary in canaries.items() if canary and canary in text] == [], place


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """Log as the service does; yield the stream of the lines."""
    lines = StringIO()
    monkeypatch.setattr(sys, "stderr", lines)
    configure_logging("debug", "json")
    yield lines
    structlog.reset_defaults()


async def test_no_secret_or_payload_is_in_an_answer_a_log_line_or_a_metric(
    database_url: str, pool: Pool, written: StringIO
) -> None:
    canaries = {
        "database password": urlsplit(database_url).password or "",
        "pepper": PEPPER,
        "encryption key": RING,
        "kafka password": KAFKA_PASSWORD,
        "payload": "canary-payload-",
    }
    answers: list[httpx2.Response] = []
    async with running(settings_for(database_url, **SETTINGS)) as service:
        client = service.client
        asked = NewApiKey(name="k", producer_groups=(ALL_GROUPS,), scopes=(Scope.ADMIN,))
        _, key = await PostgresApiKeys(pool, PEPPER.encode()).create(asked, None)
        bearer = {"Authorization": f"Bearer {key}"}
        canaries["API key"] = key
        async with Producer(status(500, "no")) as producer:
            made = await client.put(
                f"{GROUPS}/billing", json={"check_url": producer.url}, headers=bearer
            )
            canaries["check secret"] = made.json()["check_secret"].removeprefix("whsec_")
            client.headers.update(bearer)
            answers.append(await client.post(f"{GROUPS}/billing/test"))
        prepared = await client.post(HALVES, json=prepare_body(**PAYLOAD, transaction_id="t"))
        message = f"{HALVES}/{prepared.json()['message_id']}"
        answers.append(prepared)
        for changed in SPOILT:
            body = prepare_body(**{**PAYLOAD, **changed})
            answers.append(await client.post(HALVES, json=body))
        await select(pool, REFUSE)
        answers.append(await client.post(HALVES, json=prepare_body(**PAYLOAD, tags=["t"])))
        read = (message, f"{message}/history", *READ)
        answers += [await client.get(path) for path in read]
        wrong = {"Authorization": bearer["Authorization"] + "x"}
        answers.append(await client.get(HALVES, headers=wrong))
        who = {"operator": "o", "reason": "r"}
        answers.append(await client.post(f"{message}/recheck", json=who))
        await select(pool, BREAK)
        answers.append(await client.post(f"{message}/end", json={"decision": "COMMIT"}))
        answers.append(await client.get(f"{message}/history"))
    assert {answer.status_code for answer in answers} >= {200, 201, 401, 404, 422, 500}
    assert "internal_error" in written.getvalue()
    nothing_is_shown(canaries, answers, written.getvalue())


async def test_an_answer_with_a_secret_is_stored_by_no_cache(service: Service) -> None:
    client = service.client
    body = {"name": "n", "producer_groups": ["*"], "scopes": ["admin"]}
    answers = {
        "api_key": await client.post("/v1/api-keys", json=body),
        "check_secret": await service.put_group("shop"),
        "previous_expires_at": await client.post(f"{GROUPS}/shop/rotate-secret", json={}),
    }
    for member, answer in answers.items():
        assert answer.json()[member]
        assert answer.headers["cache-control"] == "no-store"


PLANTED = {
    "AUTH_PEPPER": PEPPER,
    "ENCRYPTION_KEYS": RING,
    "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
    "KAFKA_CONFIG": json.dumps({"sasl.password": KAFKA_PASSWORD}),
    "API_KEY": "canary-api-key-8a0f",
    "API_URL": "http://user:canary-url-password-77@127.0.0.1:9",
    "CHECK_PROXY_URL": "http://user:canary-proxy-4c6e@127.0.0.1:9",
    "RECONCILE_REPLICA_URL": "postgresql://reader:canary-replica-31@127.0.0.1:9/x",
    "RECONCILE_SPARK_REMOTE": "sc://spark:15002/;token=canary-spark-token-5",
    "RECONCILE_SPARK_CONF": json.dumps(
        {
            "spark.authenticate.secret": "canary-spark-secret-6",
            "spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=canary-store-9",
            "spark.hadoop.fs.azure.sas.c.a.blob.core.windows.net": "sv=1&sig=canary-azure-2",
        }
    ),
    "RECONCILE_STAGE_URI": "s3a://access:canary-bucket-key-3@bucket/stage",
}


def planted(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    """Set every secret to a canary."""
    for name, text in (PLANTED | {"DATABASE_URL": database_url}).items():
        monkeypatch.setenv(f"OUTBOX_{name}", text)


@pytest.mark.parametrize(
    "words",
    [("config", "show"), ("doctor",), ("status",), ("message", "list"), ("migrate", "status")],
    ids=" ".join,
)
@pytest.mark.parametrize("form", ["json", "table"])
def test_no_secret_is_printed_by_a_command(
    words: tuple[str, ...],
    form: str,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    planted(monkeypatch, database_url)
    monkeypatch.setattr(topics, "REQUEST_SECONDS", 0.5)  # nothing listens there
    run(("-o", form, *words))
    written = capfd.readouterr()
    assert written.out + written.err, "the output is not empty"
    assert "canary" not in written.out + written.err
