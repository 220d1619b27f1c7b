"""RocketMQ's name server, its broker with SYNC_FLUSH, and a Java process with its producer."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from deploy.fetch import fetch_folder
from devservers.artifact_lock import verify_artifacts
from devservers.artifacts import RUNTIME
from devservers.child import CLEAN_ENVIRONMENT, Child, Command
from devservers.class_archive import java
from devservers.loopback import LOOPBACK, free_ports, is_free

HERE: Final = Path(__file__).resolve().parent
JARS: Final = RUNTIME / "rocketmq"
LOCK: Final = HERE / "maven.txt"
VERSION: Final = "5.5.0"
TOPIC: Final = "BenchTx"
READY_SECONDS: Final = 60.0
OPENED: Final = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)
BROKER: Final = {
    "brokerClusterName": "bench",
    "brokerName": "bench",
    "brokerId": "0",
    "brokerIP1": LOOPBACK,
    "autoCreateTopicEnable": "true",
    "flushDiskType": "SYNC_FLUSH",
}
HEAPS: Final = {"namesrv": "256m", "broker": "2g", "client": "512m"}


class RocketMQ:
    """A running broker and the process that loads it."""

    def __init__(self, pids: dict[str, int], client: subprocess.Popen[str]) -> None:
        self.pids = pids
        self._client = client

    def send(self, threads: int, messages: int) -> dict[str, Any]:
        """Prepare and commit messages; return counts, seconds and latencies.

        Raises SystemExit if the producer has ended.
        """
        assert self._client.stdin is not None
        self._client.stdin.write(f"{threads} {messages}\n")
        self._client.stdin.flush()
        return answer_of(self._client)


def fetch() -> None:
    """Fetch the jars unless they are there; raises EmbeddedError."""
    if not JARS.exists():
        print(f"fetching RocketMQ {VERSION} with Maven", flush=True)
        fetch_folder(JARS, ["-f", str(HERE / "pom.xml")], LOCK)
    verify_artifacts(JARS, LOCK)


@contextmanager
def rocketmq(size: int) -> Iterator[RocketMQ]:
    """Run the fetched servers and the producer with values of ``size`` bytes for the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outbox-rocketmq-")))
        (names,) = free_ports(1)
        port = broker_port()
        address = f"{LOOPBACK}:{names}"
        settings = {
            **BROKER,
            "namesrvAddr": address,
            "listenPort": str(port),
            "storePathRootDir": str(folder / "store"),
            "storePathCommitLog": str(folder / "store" / "commitlog"),
        }
        namesrv = server(folder, "namesrv", {"listenPort": str(names)})
        stack.callback(namesrv.kill)
        namesrv.wait_until(lambda: listens(names), READY_SECONDS)
        broker = server(folder, "broker", settings)
        stack.callback(broker.kill)
        broker.wait_until(lambda: listens(port), READY_SECONDS)
        client = stack.enter_context(producer(folder, address, size))
        yield RocketMQ({"namesrv": namesrv.pid, "broker": broker.pid, "client": client.pid}, client)


def server(folder: Path, name: str, settings: dict[str, str]) -> Child:
    """Start the name server or the broker with a file of settings."""
    config = folder / f"{name}.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    main = {
        "namesrv": "org.apache.rocketmq.namesrv.NamesrvStartup",
        "broker": "org.apache.rocketmq.broker.BrokerStartup",
    }[name]
    return Child(
        Command(
            name=f"RocketMQ's {name}",
            arguments=[*java_command(folder, name), main, "-c", str(config)],
            log=folder / f"{name}.out",
            environment=CLEAN_ENVIRONMENT,
        )
    )


@contextmanager
def producer(folder: Path, address: str, size: int) -> Iterator[subprocess.Popen[str]]:
    """Run the Java program, which is compiled at its start; raises SystemExit without it."""
    program = [str(HERE / "TransactionLoad.java"), address, TOPIC, str(size)]
    with (folder / "client.out").open("wb") as log:
        client = subprocess.Popen(
            [*java_command(folder, "client"), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=dict(CLEAN_ENVIRONMENT),
            text=True,
        )
    try:
        answer_of(client, lambda: (folder / "client.out").read_text(errors="replace")[-500:])
        yield client
    finally:
        client.kill()
        client.wait()


def java_command(folder: Path, name: str) -> list[str]:
    """Return the JVM with its heap, the class path and folders of its own."""
    heap = HEAPS[name]
    return [
        str(java()), *OPENED, f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC",
        f"-Duser.home={folder}", f"-Drocketmq.home.dir={folder}",
        "-cp", f"{JARS}/*",
    ]  # fmt: skip


def answer_of(
    client: subprocess.Popen[str], last_words: Callable[[], str] = lambda: ""
) -> dict[str, Any]:
    """Return the next line of JSON; other lines are those of RocketMQ's own logger."""
    assert client.stdout is not None
    for line in client.stdout:
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
    raise SystemExit(f"RocketMQ's producer has ended (it needs a JDK): {last_words()}")


def broker_port() -> int:
    """Return a port that is free with the two that the broker derives from it."""
    while True:
        (port,) = free_ports(1)
        if is_free(port - 2) and is_free(port + 1):
            return port


def listens(port: int) -> bool:
    """Return whether a server accepts connections on this loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
