"""The configuration of an embedded broker: broker and controller on loopback, with a fast start.

With these session times a broker is back within 2 s of a SIGKILL; with the defaults it waits
11-13 s for its own old session. One of several nodes has three seconds, so that a slow machine is
not taken for a dead broker.
"""

from collections.abc import Mapping
from pathlib import Path

from devservers.kafka_cluster import Cluster
from devservers.loopback import LOOPBACK

LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
LOGS = "data"
"""Names in the broker's own folder, where it is started: Kafka and its log would read a comma, a
`$` or an umlaut of a whole path as something else."""
HEAP = "-Xmx512m"
HEAP_OF_SEVERAL = "-Xmx400m"
SESSION_MS = 1000
SESSION_OF_SEVERAL_MS = 3000
_SINGLE = {"metadata.max.idle.interval.ms": "0"}
"""No empty record twice a second, by which other nodes see that they are late.

Without it an idle broker takes 0.022 cores instead of 0.030.
"""


def server_properties(cluster: Cluster, node_id: int, port: int) -> Mapping[str, str]:
    """Return the broker's settings for one start."""
    broker = f"{LOOPBACK}:{port}"
    is_single = cluster.size == 1
    return {
        **_roles(cluster, node_id, broker),
        "node.id": str(node_id),
        "controller.quorum.voters": cluster.voters,
        "controller.listener.names": "CONTROLLER",
        "advertised.listeners": f"BROKER://{broker}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "log.dirs": LOGS,
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(cluster.replicas),
        "min.insync.replicas": str(cluster.in_sync),
        "num.partitions": "4",
        "broker.session.timeout.ms": str(SESSION_MS if is_single else SESSION_OF_SEVERAL_MS),
        "broker.heartbeat.interval.ms": "250",
        **(_SINGLE if is_single else {}),
        "group.initial.rebalance.delay.ms": "0",
        **_internal_topics(cluster),
        **_threads(),
    }


def java_options(cluster: Cluster) -> list[str]:
    """Return the JVM options without class path and archive.

    Only the first compiler is used: in such a short run the second one costs more CPU than it saves
    (start 1.4 s instead of 2.0 s; 300 000 records cost 5.4 s of CPU instead of 9.2 s).
    """
    return [
        HEAP if cluster.size == 1 else HEAP_OF_SEVERAL,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        f"-Dlog4j2.configurationFile={LOG_CONFIG.name}",
    ]


def _roles(cluster: Cluster, node_id: int, broker: str) -> Mapping[str, str]:
    """Return the settings of a broker that is a controller too, or only a broker."""
    port = cluster.controllers.get(node_id)
    if port is None:
        return {"process.roles": "broker", "listeners": f"BROKER://{broker}"}
    return {
        "process.roles": "broker,controller",
        "listeners": f"BROKER://{broker},CONTROLLER://{LOOPBACK}:{port}",
    }


def _internal_topics(cluster: Cluster) -> Mapping[str, str]:
    """Return settings of Kafka's internal topics: small, and as durable as the others."""
    replicas, in_sync = str(cluster.replicas), str(cluster.in_sync)
    return {
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
    }


def _threads() -> Mapping[str, str]:
    """Return thread counts for a machine of two cores that also runs everything else."""
    return {
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "2",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": "16777216",
    }
