"""Each right of the table in docs/security.md: what the product says and does without it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, Final, cast
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._acl import AclBinding, AclOperation
from confluent_kafka.admin._resource import ResourceType
from structlog.testing import capture_logs

from benchmarks.load.committed import commit_directly
from outbox.clock import SystemClock
from outbox.kafka.health.kafka_checks import kafka_checks
from outbox.kafka.health.partition_states import partition_states
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.kafka.topic_scan import KafkaTopicScan
from outbox.kafka.topic_view import KafkaTopicView
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.messages.record import BATCH, MESSAGE_ID, PRODUCER_GROUP, UnnamedRecord
from outbox.postgres.sessions.connections import connect
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from outbox.settings.environment import load_settings
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import LogCut
from tests.e2e.fixtures_command import outbox
from tests.fixtures_kafka import committed_records
from tests.fixtures_waiting import wait_for
from tests.integration.api.fixtures_service import running, settings_for
from tests.integration.checker.relay.fixtures_relay import drain
from tests.integration.kafka.fixtures_secured_broker import (
    TOPIC,
    SecuredBroker,
    page_rules,
    secured_world,
)

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

TRANSACTIONAL_IDS = "the transactional ids that begin with outbox."
SHARD: Final = 4
CHECKER: Final = "outbox-checker"
API: Final = "outbox-api"
RECONCILE: Final = "outbox-reconcile"


def of_principal(name: str) -> Sequence[AclBinding]:
    """Return the rights that the page gives to a program."""
    return [each for each in page_rules() if each.principal == f"User:{name}"]


def named(rule: AclBinding) -> str:
    """Return a right in words."""
    return f"{rule.name} {AclOperation(rule.operation).name}"


def words(rule: AclBinding) -> re.Pattern[str]:
    """Return what must be said without the right."""
    resource = f"the topic {rule.name}"
    if rule.restype is ResourceType.BROKER:
        resource = "the cluster"
    elif rule.restype is ResourceType.TRANSACTIONAL_ID:
        resource = TRANSACTIONAL_IDS
    operation = AclOperation(rule.operation).name
    return re.compile(
        rf"principal needs ([A-Z_]+ and )*{operation}( and [A-Z_]+)* on {re.escape(resource)}:"
        " docs/security.md, Kafka ACLs"
    )


def doctor(secured: SecuredBroker, principal: str) -> str:
    """Return what the doctor finds that is not well, with a principal's rights."""
    found = kafka_checks(load_settings(secured.environment(principal)), [TOPIC])
    return "\n".join(f"{each.check}: {each.detail}" for each in found if each.verdict != "ok")


def test_a_checker_without_its_transactional_ids_says_so_and_publishes_when_it_has_them(
    database_url: str, secured: SecuredBroker
) -> None:
    (rule,) = (r for r in of_principal(CHECKER) if r.restype is ResourceType.TRANSACTIONAL_ID)
    value = b"waits for its right"
    with connect(database_url, "test") as connection:
        world = secured_world(secured, database_url, connection)
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")

        def said() -> str:
            with capture_logs() as logs, closing(world.builder().open(SHARD)) as relay:
                for _ in range(5):
                    relay.run_once()
            return "\n".join(str(each.get("error")) for each in logs)

        with secured.without(rule):
            wait_for(lambda: words(rule).search(said()), seconds=30)
            commit_directly(connection, [world.message(value)], shard=SHARD)
        wait_for(lambda: not words(rule).search(said()), seconds=30)
        with closing(world.builder().open(SHARD)) as relay:
            drain(relay)
    assert [each.value for each in committed_records(secured.plain, TOPIC, 1)].count(value) == 1


@pytest.mark.parametrize(
    "rule",
    [
        rule
        for name in (API, CHECKER)
        for rule in of_principal(name)
        if rule.restype is not ResourceType.TRANSACTIONAL_ID
    ],
    ids=lambda rule: f"{rule.principal} {named(rule)}",
)
def test_the_doctor_or_a_checker_names_a_right_that_its_principal_lacks(
    secured: SecuredBroker, rule: AclBinding
) -> None:
    def said() -> bool:
        name = rule.principal.removeprefix("User:")
        found = [doctor(secured, name)]
        if name == CHECKER:  # Its watch of topics logs each of these.
            view = KafkaTopicView(secured.servers, secured.config(name))
            found += view.missing_rights([TOPIC])
        return words(rule).search("\n".join(found)) is not None

    assert not said()
    with secured.without(rule):
        wait_for(said, seconds=30)
    wait_for(lambda: not said(), seconds=30)


async def test_a_topic_that_the_api_may_not_see_is_refused_and_the_answer_says_what_to_do(
    database_url: str, secured: SecuredBroker
) -> None:
    (rule,) = (each for each in of_principal(API) if named(each) == f"{TOPIC} READ")
    own = {"kafka_bootstrap_servers": secured.servers, "kafka_config": secured.config(API)}
    catalogue = KafkaTopicCatalogue(secured.servers, secured.config(API))
    with ExitStack() as taken:
        taken.enter_context(secured.without(rule))
        wait_for(lambda: TOPIC not in catalogue.partitions())
        async with running(settings_for(database_url, **own), cast(Any, catalogue)) as service:
            await service.put_group()
            refused = await service.prepare()
            hidden = await service.client.get(f"/v1/records/{TOPIC}/0/0")
            taken.close()
            wait_for(lambda: TOPIC in catalogue.partitions())
            taken_back = await service.prepare()
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown-topic")
    assert "grant DESCRIBE on it to the API's principal" in refused.text
    assert (hidden.status_code, hidden.json()["code"]) == (503, "not-ready")
    assert f"needs READ on the topic {TOPIC}" in hidden.text
    assert taken_back.status_code == 201


def test_an_audit_that_may_not_read_the_manifests_ends_with_one_line_before_spark(
    database_url: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    reader = KafkaLogReader(secured.servers, secured.config(RECONCILE))
    (rule,) = (r for r in of_principal(RECONCILE) if named(r) == f"{PROGRESS_TOPIC} READ")
    with secured.without(rule):
        wait_for(lambda: isinstance(reader.describe([PROGRESS_TOPIC])[PROGRESS_TOPIC], str))
        ended = outbox(
            *("reconcile", "run", "--report", str(tmp_path)),
            OUTBOX_DATABASE_URL=database_url,
            **secured.environment(RECONCILE),
        )
    (line,) = (each for each in ended.err.splitlines() if "outbox-reconcile: " in each)
    assert words(rule).search(line)
    assert ended.code == 6
    wait_for(lambda: not isinstance(reader.describe([PROGRESS_TOPIC])[PROGRESS_TOPIC], str))


@pytest.mark.parametrize(
    "rule", [each for each in of_principal("outbox-reconcile") if each.name == TOPIC], ids=named
)
def test_a_topic_that_the_audit_may_not_judge_is_a_gap_that_names_the_right(
    secured: SecuredBroker, rule: AclBinding
) -> None:
    reader = KafkaLogReader(secured.servers, secured.config(RECONCILE))

    def cut() -> LogCut:
        pause = Event().wait
        return capture_log_cut(reader, PROGRESS_TOPIC, lambda: [TOPIC], SystemClock(), pause)

    with secured.without(rule):
        wait_for(lambda: isinstance(reader.describe([TOPIC])[TOPIC], str))
        without = cut()
    (gap,) = without.gaps
    assert (gap.cause, gap.partition) == ("UNVERIFIABLE/not_read", Partition(TOPIC, WHOLE_TOPIC))
    assert words(rule).search(gap.reason)
    assert without.records == ()
    wait_for(lambda: not isinstance(reader.describe([TOPIC])[TOPIC], str))
    assert (cut().gaps, len(cut().records)) == ((), 1)


@contextmanager
def written(secured: SecuredBroker, *headers: tuple[str, bytes]) -> Iterator[int]:
    """Yield the offset of a record whose transaction is open during the block."""
    own = {"bootstrap.servers": secured.plain, "transactional.id": f"written.{uuid4()}"}
    producer, offsets = Producer(own), list[int | None]()
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(
        TOPIC, b"v", b"k", 0, lambda _, sent: offsets.append(sent.offset()), headers=list(headers)
    )
    producer.flush(60)
    assert offsets[0] is not None
    yield offsets[0]
    producer.commit_transaction(60)


def test_no_right_on_a_consumer_group_is_needed(secured: SecuredBroker) -> None:
    """Each read goes on until the transaction ends, so that the group's refusal arrives first."""
    half_id, nonce = HalfId(1 << 20), Nonce(7)
    config = secured.config(CHECKER)
    scan = KafkaTopicScan(secured.servers, config)
    log = KafkaLogReader(secured.servers, config)
    sought = [UnnamedRecord(half_id, nonce, SHARD, 0)]
    headers = (
        (MESSAGE_ID, message_id_text(half_id, nonce).encode()),
        (BATCH, b"4.1.0"),
        (PRODUCER_GROUP, b"billing"),
    )
    with ThreadPoolExecutor(2) as pool:
        with written(secured, *headers) as offset:
            (found,) = partition_states(log, secured.servers, config, [TOPIC], time.time())
            scanned = pool.submit(lambda: list(scan.of_shard([TOPIC], 4)))
            read = pool.submit(scan.read, sought, [TOPIC])
            wait(list[Future[Any]]((scanned, read)), timeout=3)
        assert (half_id, nonce) in [each[1:] for each in scanned.result(60)]
        assert [each.producer_group for each in read.result(60)] == ["billing"]
    assert (found.last_stable_offset, found.ours) == (offset, True)
    (again,) = log.records([(Partition(TOPIC, 0), offset)])
    assert again.value == b"v"
    assert log.message_at(Partition(TOPIC, 0), offset) == message_id_text(half_id, nonce)
