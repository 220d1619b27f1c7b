"""Traffic of every kind over the whole service, while each of its parts is killed or frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from confluent_kafka.admin import AdminClient

from chaos.servers.nodes import PostgresNode
from chaos.servers.server_thread import ServerThread
from devservers.kafka import EmbeddedKafka
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic
from tests.chaos.fixtures_live_service import LiveService, live_service
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.fixtures_databases import migrate
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for

GROUP = "account"
WAVE = 24
IN_FLIGHT = 8
"""The number of finished messages of a wave when its fault strikes."""
ENDS = {0: "COMMIT", 1: "ROLLBACK"}
VERDICTS = {2: "COMMIT", 3: "ROLLBACK", 4: "UNKNOWN"}
LONG_SECONDS = 120.0
CALL_SECONDS = 30.0
ALREADY_ENDED = 409
OUTCOMES = """
SELECT transaction_id, CASE decision WHEN 1 THEN 'COMMIT' ELSE 'ROLLBACK' END
FROM outbox.op_message JOIN outbox.half_message USING (half_id)
WHERE starts_with(transaction_id, 'n-')
UNION ALL
SELECT h.transaction_id, 'PARKED'
FROM outbox.parked_message JOIN outbox.half_message h USING (half_id)
WHERE starts_with(h.transaction_id, 'n-')
"""


@dataclass(kw_only=True)
class Storm:
    """What was sent, what was answered, and where it all is."""

    postgres: PostgresNode
    service: LiveService
    client: httpx2.Client
    """One for all requests: a request without one first reads all trusted certificates, which takes
    more CPU than the service does for it."""
    bootstrap_servers: str
    topic: str
    progress_topic: str = PROGRESS_TOPIC
    message_ids: dict[int, str] = field(default_factory=dict)
    answered: dict[int, str] = field(default_factory=dict)
    """The decision that an end was answered with."""

    @property
    def database_url(self) -> str:
        """The service's database."""
        return self.postgres.dsn()

    def send(self, number: int) -> None:
        """Prepare a message and end it if its number requires it; repeat both until answered."""
        body = {"producer_group": GROUP, "topic": self.topic, "value": str(number)}
        body |= {"transaction_id": f"n-{number}", "key": str(number % 8)}
        prepared = self.insist(f"{self.service.url}/half-messages", body, ALREADY_ENDED)
        self.message_ids[number] = str(prepared["message_id"])
        if number % 5 in ENDS:
            url = f"{self.service.url}/half-messages/{prepared['message_id']}/end"
            answer = self.insist(url, {"decision": ENDS[number % 5]})
            self.answered[number] = str(answer["decision"])

    def insist(self, url: str, body: dict[str, Any], *others: int) -> dict[str, Any]:
        """Post until it is answered, as a producer does; return the answer.

        ``others`` are statuses beside those of success: a check may have decided a message before
        the repeated prepare arrives.
        """

        def answered() -> dict[str, Any] | None:
            try:
                answer = self.client.post(url, json=body)
            except httpx2.TransportError:
                return None
            assert answer.status_code in (200, 201, 503, *others), answer.text
            found: dict[str, Any] = answer.json()
            return None if answer.status_code == 503 else found

        return wait_for(answered, LONG_SECONDS) or {}

    def wave(self, fault: Callable[[], object]) -> None:
        """Send the next messages; the fault strikes when some are through and others are not."""
        first = len(self.message_ids)
        with ThreadPoolExecutor(4) as executor:
            sent = [executor.submit(self.send, n) for n in range(first, first + WAVE)]
            wait_for(lambda: sum(each.done() for each in sent) >= IN_FLIGHT, LONG_SECONDS, 0.005)
            fault()
            for each in sent:
                each.result()

    def outcomes(self) -> dict[int, list[str]]:
        """Return the outcomes of each message."""
        found: dict[int, list[str]] = {}
        with psycopg.connect(self.database_url) as connection:
            for name, outcome in connection.execute(OUTCOMES):
                found.setdefault(int(name.removeprefix("n-")), []).append(outcome)
        return found

    def settle(self) -> None:
        """Wait until every message is decided or parked."""
        wait_for(lambda: len(self.outcomes()) == len(self.message_ids), LONG_SECONDS, 0.2)

    def rage(self) -> None:
        """Kill the API and a checker, kill PostgreSQL, freeze a checker past its takeover."""
        self.wave(self.kill_programs)
        self.wave(self.restart_postgres)
        self.wave(self.freeze_a_checker)
        self.settle()
        self.service.checker.resume()
        self.wave(lambda: None)
        self.settle()

    def kill_programs(self) -> None:
        """End the API and a checker by SIGKILL; they are started again at once."""
        self.service.api.kill()
        self.service.checker.kill()

    def freeze_a_checker(self) -> None:
        """Stop a checker; the other one takes its shards, which no living session holds."""
        self.service.checker.pause()
        self.restart_postgres()

    def restart_postgres(self) -> None:
        """End PostgreSQL by SIGKILL; its sessions and locks end. Start it again."""
        self.postgres.server.kill()
        self.postgres.start()


@contextmanager
def storm(folder: Path) -> Iterator[Storm]:
    """Run a service with two checkers on servers of its own; nothing has been sent yet.

    A broker's progress topic belongs to one installation at a time.
    """
    with ExitStack() as stack:
        keeper = ServerThread()
        stack.callback(keeper.close)
        postgres = PostgresNode(folder / "postgres", keeper)
        stack.callback(postgres.server.erase)
        stack.callback(postgres.server.kill)
        postgres.start()
        postgres.make_database()
        migrate(postgres.dsn())
        broker = EmbeddedKafka(folder / "kafka")
        stack.callback(broker.erase)
        stack.callback(broker.kill)
        broker.start()
        servers = broker.bootstrap_servers
        ensure_progress_topic(servers, replication=1)
        endpoint = stack.enter_context(check_endpoint(verdict))
        service = stack.enter_context(
            live_service(postgres.dsn(), servers, folder, checkers=("", ""))
        )
        register(service, endpoint.url)
        topic = make_topic(servers, partitions=2)
        admin = AdminClient({"bootstrap.servers": servers})
        wait_for(lambda: topic in admin.list_topics(timeout=CALL_SECONDS).topics)  # not at once
        yield Storm(
            postgres=postgres,
            service=service,
            client=stack.enter_context(httpx2.Client(timeout=CALL_SECONDS)),
            bootstrap_servers=servers,
            topic=topic,
        )


def verdict(question: dict[str, Any]) -> str:
    """Answer a check by the message's number."""
    number = int(question["transaction_id"].removeprefix("n-"))
    return {**ENDS, **VERDICTS}[number % 5]


def register(service: LiveService, check_url: str) -> None:
    """Register the group, with quick checks."""
    quick = {"check_interval_seconds": 1, "transaction_timeout_seconds": 1, "check_max": 3}
    url = f"{service.url}/producer-groups/{GROUP}"
    answer = httpx2.put(url, json={"check_url": check_url, **quick}, timeout=60)
    assert answer.status_code == 201, answer.text


def planned(numbers: range) -> Counter[str]:
    """Return the expected outcomes of messages."""
    outcomes = {**ENDS, **VERDICTS, 4: "PARKED"}
    return Counter(outcomes[number % 5] for number in numbers)
