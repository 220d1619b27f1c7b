"""How the embedded broker is configured: one node that is broker and controller, on loopback, quick
to start.

The session times bring it back within 2 s of a SIGKILL, where the defaults make it wait 11-13 s for
its own old session.
"""

from collections.abc import Mapping
from pathlib import Path

from cli.embedded.ports import LOOPBACK

NODE_ID = 1
HEAP = "-Xmx512m"


def server_properties(
    logs: Path, broker_port: int, controller_port: int, advertised_port: int
) -> Mapping[str, str]:
    """Return the broker's settings for one start; clients are told the advertised port."""
    broker, controller = f"{LOOPBACK}:{broker_port}", f"{LOOPBACK}:{controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"BROKER://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"BROKER://{LOOPBACK}:{advertised_port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "log.dirs": str(logs),
        "auto.create.topics.enable": "false",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "num.partitions": "4",
        "broker.session.timeout.ms": "1000",
        "broker.heartbeat.interval.ms": "250",
        "group.initial.rebalance.delay.ms": "0",
        **_internal_topics(),
        **_threads(),
    }


def java_options(log_config: Path, log: Path) -> list[str]:
    """Return the JVM's options, class path and archive apart.

    The first compiler alone: the second one spends more CPU in a run this short than it saves
    (start 1.4 s for 2.0 s; 300 000 records cost the broker 5.4 s of CPU for 9.2 s).
    """
    return [
        HEAP,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={log_config}",
        f"-Doutbox.kafka.log={log}",
    ]


def _internal_topics() -> Mapping[str, str]:
    """Settings of the topics the broker makes for itself: small, one replica."""
    return {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
    }


def _threads() -> Mapping[str, str]:
    """Two cores share this node with everything else."""
    return {
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "2",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": "16777216",
    }
