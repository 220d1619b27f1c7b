"""Sets a run up: servers, topics, keys, groups and programs, and takes all of it down."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from chaos.context import Context
from chaos.history import HistoryWriter
from chaos.profiles import Profile
from chaos.programs import SCRIPTS, Environment, Program, ServiceAddresses, program_environment
from chaos.servers.nodes import PostgresNode
from chaos.servers.probes import is_alive, wait_until_true
from chaos.servers.server_thread import ServerThread
from chaos.workload import client, endpoint
from chaos.workload.client import ClientSettings
from chaos.workload.plan import BATCH_GROUP, SINGLE_GROUP, TOPICS
from cli.stores.bootstrap_key import administrator_key
from cli.stores.schema import upgrade
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from devservers.loopback import free_ports
from outbox.kafka.progress_topic import ensure_progress_topic

READY_SECONDS: Final = 180.0
"""Longer than the programs need to start on a busy machine."""
GROUP: Final[Mapping[str, object]] = {
    "transaction_timeout_seconds": 2,
    "check_interval_seconds": 1,
    "check_timeout_seconds": 2,
    "max_inflight": 8,
}
CHECK_MAX: Final = {BATCH_GROUP: 15, SINGLE_GROUP: 2}
"""Runs reach the second limit: some halves of this group are parked."""
PRODUCERS: Final = 8
"""Logical clients of one client process."""
APIS: Final = 2
CHECKERS: Final = 2


@contextmanager
def stack(run: Path, profile: Profile, seed: int, kafka: str) -> Iterator[Context]:
    """Run everything for the block. Raises EmbeddedError or TimeoutError if something fails."""
    (run / "logs").mkdir()
    (run / "truth").mkdir()
    with ExitStack() as stack:
        context = _servers(stack, run, profile, seed, kafka)
        _Starter(stack, context).start()
        yield context


def _servers(stack: ExitStack, run: Path, profile: Profile, seed: int, kafka: str) -> Context:
    """Start PostgreSQL and Kafka with an empty installation."""
    thread = ServerThread()
    stack.callback(thread.close)
    postgres = PostgresNode(run / "postgres", thread)
    cluster = new_cluster(profile.brokers)
    brokers = [
        EmbeddedKafka(run / f"kafka-{node}", cluster=cluster, node_id=node, release=kafka)
        for node in range(1, profile.brokers + 1)
    ]
    for broker in brokers:
        stack.callback(broker.kill)
        thread.do(broker.launch)
    stack.callback(postgres.server.stop)
    postgres.start()
    postgres.make_database()
    upgrade(postgres.dsn())
    for broker in brokers:
        broker.wait_ready(READY_SECONDS)
    context = Context(
        dir=run,
        profile=profile,
        seed=seed,
        history=HistoryWriter(run, "harness"),
        server_thread=thread,
        postgres=postgres,
        brokers=brokers,
    )
    make_topics(context.bootstrap, profile.brokers)
    return context


def make_topics(bootstrap: str, replication: int) -> None:
    """Create the topic of the manifests and the data topics."""
    ensure_progress_topic(bootstrap, replication=replication)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(name, partitions, replication) for name, partitions in TOPICS.items()]
    for made in admin.create_topics(wanted).values():
        made.result(READY_SECONDS)


class _Starter:
    """Starts the programs of a run; the exit stack stops them."""

    def __init__(self, stack: ExitStack, context: Context) -> None:
        self._stack, self._context = stack, context
        self._check_port, self._spare, *ports = free_ports(2 + APIS + CHECKERS)
        self._apis, self._metrics = ports[:APIS], ports[APIS:]
        self._addresses = ServiceAddresses(
            database_url=context.postgres.dsn(),
            bootstrap_servers=context.bootstrap,
            pepper=_secret(f"{context.dir}/pepper"),
            encryption_key=_secret(f"{context.dir}/encryption"),
        )
        self._urls = {
            role: context.postgres.dsn_of_role(f"outbox_{role}") for role in ("api", "checker")
        }
        self._key = administrator_key(context.postgres.dsn(), self._addresses.pepper, "chaos")

    def start(self) -> None:
        """Start the service, its check endpoint, and the clients once the APIs answer."""
        for number, port in enumerate(self._apis):
            self._serve("api", number, http_port=port, metrics_port=self._spare)
        for number, port in enumerate(self._metrics):
            self._serve("checker", number, http_port=0, metrics_port=port)
        answers = partial(endpoint.environment_of, self._context.dir, self._check_port)
        self._add("endpoint-0", [sys.executable, "-m", endpoint.__name__], answers)
        for port in self._apis:
            _wait_alive(port)
        for group in CHECK_MAX:
            _register(self._apis[0], self._key, group, f"http://127.0.0.1:{self._check_port}/check")
        for number in range(self._context.profile.client_processes):
            name = f"client-{number}"
            command = [sys.executable, "-m", client.__name__]
            self._add(name, command, partial(self._client_environment, name))

    def _serve(self, role: str, number: int, *, http_port: int, metrics_port: int) -> None:
        """Start an API or a checker, which logs in with its role as in a deployment."""
        given = program_environment(
            replace(self._addresses, database_url=self._urls[role]),
            http_port=http_port,
            metrics_port=metrics_port,
            further=self._context.profile.settings,
        )
        self._add(f"{role}-{number}", [str(SCRIPTS / f"outbox-{role}")], lambda _: given)

    def _add(self, name: str, arguments: list[str], environment: Environment) -> None:
        context = self._context
        ended = partial(_end, context)
        program = Program(name, arguments, environment, context.dir / "logs", ended)
        context.programs[name] = program
        self._stack.callback(program.stop)
        program.start()

    def _client_environment(self, name: str, life: int) -> Mapping[str, str]:
        profile = self._context.profile
        return client.environment_of(
            ClientSettings(
                run=str(self._context.dir),
                name=name,
                life=life,
                seed=self._context.seed,
                ports=self._apis,
                api_key=self._key,
                producers=PRODUCERS,
                messages_per_second=profile.messages_per_second / profile.client_processes,
            )
        )


def _register(port: int, key: str, group: str, url: str) -> None:
    about = {"check_url": url, "batch_check": group == BATCH_GROUP, "check_max": CHECK_MAX[group]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/producer-groups/{group}",
        data=json.dumps({**GROUP, **about}).encode(),
        method="PUT",
        headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=READY_SECONDS):
        pass


def _wait_alive(port: int) -> None:
    if not wait_until_true(lambda: is_alive(port), READY_SECONDS, threading.Event()):
        raise TimeoutError(f"the API on port {port} does not answer")


def _end(context: Context, name: str, why: str) -> None:
    context.history.write("death", "ok", target=name, why=why)


def _secret(name: str) -> str:
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()
