"""Each right of the table in docs/security.md: what the product says and does without it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
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
from checker.maintenance.topic_watch import TopicWatch
from outbox.clock import SystemClock
from outbox.errors import KafkaForbidden
from outbox.kafka.health.kafka_checks import kafka_checks
from outbox.kafka.health.partition_states import partition_states
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.kafka.topic_scan import KafkaTopicScan
from outbox.kafka.topic_view import KafkaTopicView
from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.messages.record import BATCH, MESSAGE_ID, PRODUCER_GROUP
from outbox.messages.topics import SeenTopic
from outbox.postgres.sessions.connections import connect
from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from outbox.relay.ports import UnnamedRecord
from outbox.relay.protocol.state import Phase
from outbox.settings.environment import load_settings
from outbox.telemetry.metrics import Metrics
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
    SecuredWorld,
    page_rules,
    secured_world,
)
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

TRANSACTIONAL_IDS = "the transactional ids that begin with outbox."
FIRST_SHARD = 4
CHECKER: Final = "outbox-checker"
API: Final = "outbox-api"
RECONCILE: Final = "outbox-reconcile"
OF_TOPIC = "topic_id = (SELECT id FROM outbox.topic WHERE name = %s)"
DUE = f"UPDATE outbox.held_record SET next_attempt_at = clock_timestamp() WHERE {OF_TOPIC}"
HELD = f"SELECT count(*) FROM outbox.held_record WHERE released_at IS NULL AND {OF_TOPIC}"


def of_principal(name: str) -> Sequence[AclBinding]:
    """Return the rights that the page gives to a program."""
    return [each for each in page_rules() if each.principal == f"User:{name}"]


def named(rule: AclBinding) -> str:
    """Return a right in words."""
    return f"{rule.name} {AclOperation(rule.operation).name}"


def used(rule: AclBinding) -> bool:
    """Return whether a relay that works uses the right; the others are for the doctor."""
    return rule.restype is not ResourceType.BROKER and not rule.name.startswith("__")


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


class StoredTopics:
    """One topic that has had messages."""

    async def all(self) -> dict[str, SeenTopic]:
        return {TOPIC: SeenTopic()}

    async def store(self, seen: Any) -> None:
        """Store nothing."""

    async def note_growth(self, topic: str, before: int, after: int) -> None:
        """Store nothing."""


def watch(secured: SecuredBroker) -> str:
    """Return what a checker that looks at its topics logs."""
    view = KafkaTopicView(secured.servers, secured.config("outbox-checker"))
    topics: Any = StoredTopics()
    with capture_logs() as logs:
        asyncio.run(TopicWatch(topics, view, FreeLocks(), Metrics()).step())
    return "\n".join(f"{each['event']}: {each['error']}" for each in logs)


@pytest.mark.parametrize("rule", [r for r in of_principal("outbox-checker") if used(r)], ids=named)
def test_a_checker_without_a_right_says_which_and_loses_and_doubles_nothing(
    database_url: str, secured: SecuredBroker, rule: AclBinding
) -> None:
    values = [f"{named(rule)} {number}".encode() for number in range(3)]
    with connect(database_url, "test") as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        world = secured_world(secured, database_url, connection)
        relayed = Relayed(world, FIRST_SHARD + of_principal("outbox-checker").index(rule))
        relayed.commit(values[0])
        relayed.finish()
        relayed.commit(values[1])
        of_ids = rule.restype is ResourceType.TRANSACTIONAL_ID
        say = relayed.go_on if of_ids else lambda: doctor(secured, CHECKER) + watch(secured)
        with secured.without(rule):
            wait_for(lambda: words(rule).search(say()), seconds=30)
            relayed.commit(values[2])
            relayed.go_on()
        wait_for(relayed.finish)
    records = committed_records(secured.plain, TOPIC, len(values))
    own = [each.value for each in records if (each.value or b"").startswith(values[0][:-1])]
    assert own == values


@dataclass
class Relayed:
    """A shard of its own, and the relays that serve it one after the other."""

    world: SecuredWorld
    shard: int

    def commit(self, value: bytes) -> None:
        """Store a message and its COMMIT."""
        commit_directly(self.world.connection, [self.world.message(value)], shard=self.shard)

    def go_on(self) -> str:
        """Let a new relay work for some rounds; return what it logs."""
        with capture_logs() as logs, closing(self.world.builder().open(self.shard)) as relay:
            for _ in range(5):
                relay.run_once()
        return "\n".join(str(each.get("error")) for each in logs)

    def finish(self) -> bool:
        """Let a new relay work until nothing is left; return whether nothing is held either."""
        self.world.connection.execute(DUE.encode(), (TOPIC,))
        with closing(self.world.builder().open(self.shard)) as relay:
            assert drain(relay).phase is not Phase.HALT
        return bool(self.world.one(HELD, TOPIC) == 0)


@pytest.mark.parametrize(
    "rule",
    [*of_principal("outbox-api"), *(r for r in of_principal("outbox-checker") if not used(r))],
    ids=lambda rule: f"{rule.principal} {named(rule)}",
)
def test_the_doctor_names_a_right_that_its_principal_lacks(
    secured: SecuredBroker, rule: AclBinding
) -> None:
    def said() -> bool:
        found = doctor(secured, rule.principal.removeprefix("User:"))
        return words(rule).search(found) is not None

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
    assert "its Kafka principal needs DESCRIBE" in refused.text
    assert (hidden.status_code, hidden.json()["code"]) == (503, "not-ready")
    assert "needs READ on this topic" in hidden.text
    assert taken_back.status_code == 201


async def test_a_topic_that_kafka_does_not_let_us_create_is_no_outage(
    database_url: str, secured: SecuredBroker
) -> None:
    own = {"kafka_bootstrap_servers": secured.servers, "create_topics": True}
    catalogue = KafkaTopicCatalogue(secured.servers, secured.config(API))
    with capture_logs() as logs:
        async with running(settings_for(database_url, **own), cast(Any, catalogue)) as service:
            await service.put_group()
            refused = [await service.prepare(topic=f"never.{number}") for number in range(2)]
            ready = await service.client.get("/readyz")
    assert [each.json()["code"] for each in refused] == ["unknown-topic"] * 2
    assert ready.json()["checks"]["kafka"] == "ok"
    told = [each["error"] for each in logs if each["event"] == "topic_refused"]
    assert len(told) == 1
    assert "needs CREATE on the topic never.0" in told[0]


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
    assert (gap.finding_class, gap.partition) == ("NOT_READ", Partition(TOPIC, WHOLE_TOPIC))
    assert words(rule).search(gap.reason)
    assert without.records == ()
    wait_for(lambda: not isinstance(reader.describe([TOPIC])[TOPIC], str))
    assert (cut().gaps, len(cut().records)) == ((), 1)


@pytest.mark.parametrize("principal", ["outbox-reconcile", "outbox-checker"])
def test_records_that_may_not_be_read_are_not_left_out_in_silence(
    secured: SecuredBroker, principal: str
) -> None:
    """The checker may still see the topic, because it may write to it."""
    (rule,) = (each for each in of_principal(principal) if named(each) == f"{TOPIC} READ")
    place, reader = Partition(TOPIC, 0), KafkaLogReader(secured.servers, secured.config(principal))
    with written(secured) as offset:
        pass
    with secured.without(rule):
        wait_for(lambda: isinstance(reader.describe([TOPIC])[TOPIC], str))
        for read in (
            lambda: reader.next_records({place: offset}),
            lambda: reader.records([(place, offset)]),
        ):
            with pytest.raises(KafkaForbidden, match=f"needs READ on the topic {TOPIC}"):
                read()
    wait_for(lambda: not isinstance(reader.describe([TOPIC])[TOPIC], str))
    (found,) = reader.next_records({place: offset}).values()
    assert found is not None
    assert [found] == list(reader.records([(place, offset)]))


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
    sought = [UnnamedRecord(half_id, nonce, FIRST_SHARD, 0)]
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
