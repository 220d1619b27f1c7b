"""Sets a run up: servers, topics, keys, groups, programs and readers, and takes all of it down."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from chaos.faults.processes import owned_shards
from chaos.faults.refusals import AUTHORIZER
from chaos.faults.run_context import ChaosContext
from chaos.final_state.postgres import shards_in_use, write_start
from chaos.history.recovery import Recoveries
from chaos.history.writer import HistoryWriter
from chaos.profiles.profile import Profile
from chaos.programs.children import Child, ProcessExit, Programs, reason_of
from chaos.programs.environment import ServiceAddresses, program_environment
from chaos.proxies.proxy_client import ProxyClient
from chaos.servers.nodes import Broker, Brokers, PostgresNode
from chaos.servers.probes import is_alive, wait_until_true
from chaos.servers.server_thread import ServerThread
from chaos.servers.small_disk import small_disk
from chaos.workload import client, endpoint
from chaos.workload.client import ClientSettings
from chaos.workload.live_reader import LiveReader
from chaos.workload.plan import BATCH_GROUP, SINGLE_GROUP, TOPICS
from cli.stores.bootstrap_key import administrator_key
from cli.stores.schema import upgrade
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from devservers.ports import free_ports
from outbox.kafka.progress_topic import PROGRESS_TOPIC, ensure_progress_topic

READY_SECONDS: Final = 180.0
"""Longer than the programs need to start on a busy machine."""
WAL_SHARE: Final = 6
"""The WAL may take 1/6 of a small disk."""
GROUP: Final[Mapping[str, object]] = {
    "transaction_timeout_seconds": 2,
    "check_interval_seconds": 1,
    "check_max": 15,
    "check_timeout_seconds": 2,
    "max_inflight": 8,
}
CHECK_MAX_OF: Final[Mapping[str, int]] = {SINGLE_GROUP: 2}
"""A limit that runs reach: some halves of this group are parked."""
PROGRAMS: Final = {
    "api": "api.__main__:main",
    "checker": "checker.__main__:main",
    "client": "chaos.workload.client:main",
    "endpoint": "chaos.workload.endpoint:main",
}
OF_ROLES: Final = ("api", "checker")
"""Programs that log in as a role of theirs, as in a deployment."""


class Age(Protocol):
    """Lets the servers of a run live before its programs start."""

    def postgres(self, node: PostgresNode) -> None:
        """Let a new server with an empty database live."""

    def kafka(self, bootstrap: str, topics: Collection[str]) -> None:
        """Let new brokers live that have just these topics, without a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """The running servers and programs of one run."""

    context: ChaosContext
    addresses: ServiceAddresses
    readers: tuple[LiveReader, ...]


class TestbedBuilder:
    """Builds one testbed; the exit stack closes everything that it opens."""

    def __init__(
        self, run: Path, profile: Profile, seed: int, stack: ExitStack, age: Age | None
    ) -> None:
        self._run, self._profile, self._seed, self._stack = run, profile, seed, stack
        self._age = age
        ports = free_ports(profile.apis + profile.checkers + 2 + profile.brokers)
        self._api_ports = list(ports[: profile.apis])
        self._metrics_ports = list(ports[profile.apis : profile.apis + profile.checkers])
        self._endpoint_port, self._spare_port, *self._broker_ports = ports[
            profile.apis + profile.checkers :
        ]
        self._key = ""
        self._role_urls: dict[str, str] = {}

    def build(self) -> Testbed:
        """Start everything; return once the APIs are ready and the clients work."""
        (self._run / "logs").mkdir()
        (self._run / "truth").mkdir()
        context = self._context()
        for broker in context.brokers:
            broker.launch()
        self._stack.callback(lambda: context.postgres.server.stop())
        context.postgres.start()
        context.postgres.make_database()
        if self._age is not None:
            self._age.postgres(context.postgres)
        upgrade(context.postgres.dsn())
        context.recoveries.shards_in_use = shards_in_use(context.postgres.dsn())
        write_start(self._run, context.postgres.dsn())
        for broker in context.brokers:
            broker.wait_ready()
        make_topics(context.bootstrap, self._profile.replicas or self._profile.brokers)
        if self._age is not None:
            self._age.kafka(context.bootstrap, (*TOPICS, PROGRESS_TOPIC))
        addresses = self._addresses(context)
        self._key = administrator_key(context.postgres.dsn(), addresses.pepper, "chaos")
        context.api_key = self._key
        self._add_programs(context, addresses)
        readers = self._start(context)
        return Testbed(context=context, addresses=addresses, readers=readers)

    def _context(self) -> ChaosContext:
        server_thread = ServerThread()
        self._stack.callback(server_thread.close)
        history = HistoryWriter(self._run, "harness")
        recoveries = Recoveries(history)
        worker = ThreadPoolExecutor(2, "ends")
        self._stack.callback(worker.shutdown)

        def ended(child: Child, end: ProcessExit) -> None:
            if child.role == "checker":
                history.write("death", "ok", target=child.name, why=reason_of(end))
            worker.submit(_note_end, context, child, end)

        processes = Programs(self._run / "logs", ended)
        self._stack.callback(processes.close)
        postgres = self._postgres(server_thread)
        proxies = self._proxies(postgres) if self._profile.proxies else None
        brokers = self._brokers(server_thread, proxies)
        context = ChaosContext(
            dir=self._run,
            profile=self._profile,
            seed=self._seed,
            history=history,
            server_thread=server_thread,
            postgres=postgres,
            brokers=Brokers(brokers),
            bootstrap=",".join(broker.server.bootstrap_servers for broker in brokers),
            database_url="",
            processes=processes,
            recoveries=recoveries,
            topics=dict(TOPICS),
            proxies=proxies,
        )
        return context

    def _postgres(self, server_thread: ServerThread) -> PostgresNode:
        size = self._profile.disk_megabytes
        wal = {"max_wal_size": f"{size // WAL_SHARE}MB"} if size else {}
        node = PostgresNode(self._run / "postgres", server_thread, settings=wal)
        if size:
            self._stack.enter_context(small_disk(node.server.home, size))
        return node

    def _brokers(self, server_thread: ServerThread, proxies: ProxyClient | None) -> list[Broker]:
        cluster = new_cluster(self._profile.brokers, self._profile.controllers or None)
        made = []
        for node_id, (name, port) in enumerate(self._broker_links().items(), 1):
            server = EmbeddedKafka(
                self._run / name,
                port=port,
                advertised_port=proxies.link(name).port if proxies else port,
                cluster=cluster,
                node_id=node_id,
                settings=AUTHORIZER if self._profile.has_fault("refuse_write") else {},
                release=self._profile.kafka,
            )
            self._stack.callback(server.kill)
            made.append(Broker(server, server_thread))
        return made

    def _broker_links(self) -> dict[str, int]:
        """Return the port by name of each broker's folder and link; the first name is ``kafka``."""
        return {
            f"kafka-{at}" if at else "kafka": port for at, port in enumerate(self._broker_ports)
        }

    def _proxies(self, postgres: PostgresNode) -> ProxyClient:
        proxies = ProxyClient(self._run / "logs" / "proxies.log", self._seed)
        self._stack.callback(proxies.close)
        proxies.open("postgres", "postgres", postgres.port)
        for name, port in self._broker_links().items():
            proxies.open(name, "kafka", port)
        proxies.open("check", "tcp", self._endpoint_port)
        return proxies

    def _addresses(self, context: ChaosContext) -> ServiceAddresses:
        proxies = context.proxies
        port = proxies.link("postgres").port if proxies else None
        context.database_url = context.postgres.dsn(port)
        self._role_urls = {
            program: context.postgres.dsn_of_role(f"outbox_{program}", port) for program in OF_ROLES
        }
        return ServiceAddresses(
            database_url=context.database_url,
            bootstrap_servers=context.bootstrap,
            pepper=_secret(f"{self._run}/pepper"),
            encryption_key=_secret(f"{self._run}/encryption"),
        )

    def _add_programs(self, context: ChaosContext, addresses: ServiceAddresses) -> None:
        programs = {**PROGRAMS, **self._profile.programs}
        for number, port in enumerate(self._api_ports):
            self._add(context, addresses, f"api-{number}", programs["api"], port, self._spare_port)
        for number, port in enumerate(self._metrics_ports):
            self._add(context, addresses, f"checker-{number}", programs["checker"], 0, port)
        context.processes.add(
            "endpoint-0",
            "endpoint",
            programs["endpoint"],
            lambda life: endpoint.environment_of(self._run, self._endpoint_port, life),
        )
        for number in range(self._profile.client_processes):
            self._add_client(context, f"client-{number}", programs["client"])

    def _add(
        self,
        context: ChaosContext,
        addresses: ServiceAddresses,
        name: str,
        program: str,
        http: int,
        metrics: int,
    ) -> None:
        role = name.partition("-")[0]
        if program == PROGRAMS[role]:  # a control may do what the role of its program may not
            addresses = replace(addresses, database_url=self._role_urls[role])
        environment = program_environment(
            addresses, http_port=http, metrics_port=metrics, further=self._profile.settings
        )
        context.processes.add(name, role, program, lambda _: environment).port = http

    def _add_client(self, context: ChaosContext, name: str, program: str) -> None:
        rate = self._profile.messages_per_second / self._profile.client_processes

        def environment(life: int) -> Mapping[str, str]:
            return client.environment_of(
                ClientSettings(
                    run=str(self._run),
                    name=name,
                    life=life,
                    seed=self._seed,
                    ports=self._api_ports,
                    api_key=self._key,
                    producers=self._profile.clients_each,
                    messages_per_second=rate,
                )
            )

        context.processes.add(name, "client", program, environment)

    def _start(self, context: ChaosContext) -> tuple[LiveReader, ...]:
        processes = context.processes
        for role in ("api", "endpoint", "checker"):
            processes.start(role)
        readers = (
            LiveReader(
                context.bootstrap, TOPICS, self._run, committed=True, recoveries=context.recoveries
            ),
            LiveReader(context.bootstrap, TOPICS, self._run, committed=False),
        )
        for reader in readers:
            self._stack.callback(reader.stop)
            reader.start()
        for port in self._api_ports:
            wait_until(partial(is_alive, port), f"the API on port {port}")
        for group, batch in ((BATCH_GROUP, True), (SINGLE_GROUP, False)):
            self._register(context, group, batch=batch)
        processes.start("client")
        return readers

    def _register(self, context: ChaosContext, group: str, *, batch: bool) -> None:
        port = context.proxies.link("check").port if context.proxies else self._endpoint_port
        url = f"http://127.0.0.1:{port}/check"
        most = CHECK_MAX_OF.get(group, GROUP["check_max"])
        about = {"check_url": url, "batch_check": batch, "check_max": most}
        body = json.dumps({**GROUP, **about}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._api_ports[0]}/v1/producer-groups/{group}",
            data=body,
            method="PUT",
            headers={"content-type": "application/json", "authorization": f"Bearer {self._key}"},
        )
        with urllib.request.urlopen(request, timeout=READY_SECONDS):
            pass


@contextmanager
def testbed(run: Path, profile: Profile, seed: int, age: Age | None) -> Iterator[Testbed]:
    """Run the testbed for the block. Raises EmbeddedError or TimeoutError if something fails."""
    with ExitStack() as stack:
        yield TestbedBuilder(run, profile, seed, stack, age).build()


def make_topics(bootstrap: str, replication: int = 1) -> None:
    """Create the topic of the manifests and the data topics."""
    ensure_progress_topic(bootstrap, replication=replication)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(name, partitions, replication) for name, partitions in TOPICS.items()]
    for made in admin.create_topics(wanted).values():
        made.result(READY_SECONDS)


def wait_until(ready: Callable[[], bool], what: str) -> None:
    """Wait for something; raises TimeoutError."""
    if not wait_until_true(ready, READY_SECONDS, threading.Event()):
        raise TimeoutError(f"{what} is not ready after {READY_SECONDS:.0f} s")


def _note_end(context: ChaosContext, child: Child, end: ProcessExit) -> None:
    """Record a death that no nemesis caused: at a failpoint, or an unexpected one."""
    reason = reason_of(end)
    if reason == "failpoint" and child.role == "checker":
        context.recoveries.record_fault(reason, child.name, owned_shards(context, end.pid))
    if end.why is None:
        context.history.write("fault", "ok", kind=reason, target=child.name, pid=end.pid)


def _secret(name: str) -> str:
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()
