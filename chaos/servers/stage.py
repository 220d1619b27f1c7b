"""Sets a run up: servers, topics, keys, groups, programs and readers, and takes all of it down."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from chaos.faults.processes import owned_shards
from chaos.final_state.probes import comes_true, is_alive
from chaos.final_state.recovery import Recoveries
from chaos.history import HistoryWriter
from chaos.profiles import Profile
from chaos.programs.children import Child, End, Programs, reason_of
from chaos.programs.environment import Reach, program_environment
from chaos.proxies.proxy_client import ProxyClient
from chaos.run_context import ChaosContext
from chaos.servers.nodes import Broker, Brokers, PostgresNode
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
from outbox.kafka.progress_topic import ensure_progress_topic

READY_SECONDS: Final = 30.0
WAL_SHARE: Final = 6
"""The part of a small disk that PostgreSQL may fill with WAL."""
GROUP: Final[Mapping[str, object]] = {
    "transaction_timeout_seconds": 2,
    "check_interval_seconds": 1,
    "check_max": 1000,
    "check_timeout_seconds": 2,
    "max_inflight": 8,
}
PROGRAMS: Final = {
    "api": "api.__main__:main",
    "checker": "checker.__main__:main",
    "client": "chaos.workload.client:main",
    "endpoint": "chaos.workload.endpoint:main",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A run that is under way."""

    world: ChaosContext
    reach: Reach
    readers: tuple[LiveReader, ...]


class Builder:
    """Builds one stage; whatever it opens is closed by the stack."""

    def __init__(self, run: Path, profile: Profile, seed: int, stack: ExitStack) -> None:
        self._run, self._profile, self._seed, self._stack = run, profile, seed, stack
        ports = free_ports(profile.apis + profile.checkers + 2 + profile.brokers)
        self._api_ports = list(ports[: profile.apis])
        self._metrics_ports = list(ports[profile.apis : profile.apis + profile.checkers])
        self._endpoint_port, self._spare_port, *self._broker_ports = ports[
            profile.apis + profile.checkers :
        ]
        self._key = ""

    def build(self) -> Stage:
        """Start everything; return once the APIs are ready and the clients are at work."""
        (self._run / "logs").mkdir()
        (self._run / "truth").mkdir()
        world = self._world()
        for broker in world.brokers:
            broker.launch()
        self._stack.callback(lambda: world.postgres.server.stop())
        world.postgres.start()
        world.postgres.make_database()
        upgrade(world.postgres.dsn())
        for broker in world.brokers:
            broker.wait_ready()
        make_topics(world.bootstrap, self._profile.brokers)
        reach = self._reach(world)
        self._key = administrator_key(world.postgres.dsn(), reach.pepper, "chaos")
        self._add_programs(world, reach)
        readers = self._start(world)
        return Stage(world=world, reach=reach, readers=readers)

    def _world(self) -> ChaosContext:
        keeper = ServerThread()
        self._stack.callback(keeper.close)
        history = HistoryWriter(self._run, "harness")
        recoveries = Recoveries(history)
        worker = ThreadPoolExecutor(2, "ends")
        self._stack.callback(worker.shutdown)
        processes = Programs(
            self._run / "logs", lambda child, end: worker.submit(_note_end, world, child, end)
        )
        self._stack.callback(processes.close)
        postgres = self._postgres(keeper)
        board = self._proxies(postgres) if self._profile.proxies else None
        brokers = self._brokers(keeper, board)
        world = ChaosContext(
            dir=self._run,
            profile=self._profile,
            seed=self._seed,
            history=history,
            keeper=keeper,
            postgres=postgres,
            brokers=Brokers(brokers),
            bootstrap=",".join(broker.server.bootstrap_servers for broker in brokers),
            database_url="",
            processes=processes,
            recoveries=recoveries,
            proxies=board,
        )
        return world

    def _postgres(self, keeper: ServerThread) -> PostgresNode:
        size = self._profile.disk_megabytes
        wal = {"max_wal_size": f"{size // WAL_SHARE}MB"} if size else {}
        node = PostgresNode(self._run / "postgres", keeper, settings=wal)
        if size:
            self._stack.enter_context(small_disk(node.server.home, size))
        return node

    def _brokers(self, keeper: ServerThread, board: ProxyClient | None) -> list[Broker]:
        cluster, made = new_cluster(self._profile.brokers), []
        for node_id, (name, port) in enumerate(self._broker_links().items(), 1):
            server = EmbeddedKafka(
                self._run / name,
                port=port,
                advertised_port=board.link(name).port if board else port,
                cluster=cluster,
                node_id=node_id,
            )
            self._stack.callback(server.kill)
            made.append(Broker(server, keeper))
        return made

    def _broker_links(self) -> dict[str, int]:
        """Name each broker's folder and link; the first is ``kafka``, which all profiles have."""
        return {
            f"kafka-{at}" if at else "kafka": port for at, port in enumerate(self._broker_ports)
        }

    def _proxies(self, postgres: PostgresNode) -> ProxyClient:
        board = ProxyClient(self._run / "logs" / "proxies.log", self._seed)
        self._stack.callback(board.close)
        board.open("postgres", "postgres", postgres.port)
        for name, port in self._broker_links().items():
            board.open(name, "kafka", port)
        board.open("check", "tcp", self._endpoint_port)
        return board

    def _reach(self, world: ChaosContext) -> Reach:
        board = world.proxies
        world.database_url = world.postgres.dsn(board.link("postgres").port if board else None)
        return Reach(
            database_url=world.database_url,
            bootstrap_servers=world.bootstrap,
            pepper=_secret(f"{self._run}/pepper"),
            encryption_key=_secret(f"{self._run}/encryption"),
        )

    def _add_programs(self, world: ChaosContext, reach: Reach) -> None:
        programs = {**PROGRAMS, **self._profile.programs}
        for number, port in enumerate(self._api_ports):
            self._add(world, reach, f"api-{number}", programs["api"], port, self._spare_port)
        for number, port in enumerate(self._metrics_ports):
            self._add(world, reach, f"checker-{number}", programs["checker"], 0, port)
        world.processes.add(
            "endpoint-0",
            "endpoint",
            programs["endpoint"],
            lambda life: endpoint.environment_of(self._run, self._endpoint_port, life),
        )
        for number in range(self._profile.client_processes):
            self._add_client(world, f"client-{number}", programs["client"])

    def _add(
        self, world: ChaosContext, reach: Reach, name: str, program: str, http: int, metrics: int
    ) -> None:
        role = name.partition("-")[0]
        environment = program_environment(
            reach, http_port=http, metrics_port=metrics, further=self._profile.settings
        )
        world.processes.add(name, role, program, lambda _: environment).port = http

    def _add_client(self, world: ChaosContext, name: str, program: str) -> None:
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

        world.processes.add(name, "client", program, environment)

    def _start(self, world: ChaosContext) -> tuple[LiveReader, ...]:
        processes = world.processes
        for role in ("api", "endpoint", "checker"):
            processes.start(role)
        readers = (
            LiveReader(
                world.bootstrap, TOPICS, self._run, committed=True, recoveries=world.recoveries
            ),
            LiveReader(world.bootstrap, TOPICS, self._run, committed=False),
        )
        for reader in readers:
            self._stack.callback(reader.stop)
            reader.start()
        for port in self._api_ports:
            wait_until(partial(is_alive, port), f"the API on port {port}")
        for group, batch in ((BATCH_GROUP, True), (SINGLE_GROUP, False)):
            self._register(world, group, batch=batch)
        processes.start("client")
        return readers

    def _register(self, world: ChaosContext, group: str, *, batch: bool) -> None:
        port = world.proxies.link("check").port if world.proxies else self._endpoint_port
        url = f"http://127.0.0.1:{port}/check"
        body = json.dumps({**GROUP, "check_url": url, "batch_check": batch}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._api_ports[0]}/v1/producer-groups/{group}",
            data=body,
            method="PUT",
            headers={"content-type": "application/json", "authorization": f"Bearer {self._key}"},
        )
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def stage(run: Path, profile: Profile, seed: int) -> Iterator[Stage]:
    """Set a run up for the block. Raises EmbeddedError or TimeoutError if something fails."""
    with ExitStack() as stack:
        yield Builder(run, profile, seed, stack).build()


def make_topics(bootstrap: str, replication: int = 1) -> None:
    """Create the manifests' topic and the data topics."""
    ensure_progress_topic(bootstrap, replication=replication)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(name, partitions, replication) for name, partitions in TOPICS.items()]
    for made in admin.create_topics(wanted).values():
        made.result(READY_SECONDS)


def wait_until(ready: Callable[[], bool], what: str) -> None:
    """Wait for something; raises TimeoutError."""
    if not comes_true(ready, READY_SECONDS, threading.Event()):
        raise TimeoutError(f"{what} is not ready after {READY_SECONDS:.0f} s")


def _note_end(world: ChaosContext, child: Child, end: End) -> None:
    """Note a death that no nemesis has performed: a failpoint's, or one that nobody wanted."""
    reason = reason_of(end)
    if reason == "failpoint" and child.role == "checker":
        world.recoveries.struck(reason, child.name, owned_shards(world, end.pid))
    if end.why is None:
        world.history.write("fault", "ok", kind=reason, target=child.name, pid=end.pid)


def _secret(name: str) -> str:
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()
