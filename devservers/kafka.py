"""A Kafka broker on loopback (KRaft): a single node, or one of several.

Kafka's own tool formats the storage: otherwise the broker starts too, but with
`transaction.version` 0. The tool's answer about features is fetched with the class archive, as it
is the same for each single broker.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from devservers.artifacts import kafka_jars
from devservers.child import CLEAN_ENVIRONMENT, Child, Command, run_to_end
from devservers.class_archive import (
    archive_options,
    archive_path,
    class_path,
    java,
    recording_options,
)
from devservers.kafka_cluster import NODE_ID, Cluster, new_id, single_node
from devservers.kafka_config import (
    LOG_CONFIG,
    LOGS,
    java_options,
    server_properties,
)
from devservers.kafka_wire import has_controller
from devservers.loopback import LOOPBACK, free_ports
from devservers.server import Server

FEATURES = "bootstrap.checkpoint"
START_SECONDS = 60.0
FORMAT_SECONDS = 60.0
RECORDING_SECONDS = 120.0


class EmbeddedKafka(Server):
    """One broker as a child process."""

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        cluster: Cluster | None = None,
        node_id: int = NODE_ID,
        release: str = "",
    ) -> None:
        """Prepare a broker; it is the only node of a new cluster, or `node_id` of `cluster`.

        `port` 0 picks a free port; `settings` override the defaults. A `release` of Kafka other
        than the usual one must have been fetched (ArtifactsMissing).
        """
        super().__init__(data_dir.resolve())
        free = free_ports(2)
        self.port = port or free[0]
        self.node_id = node_id
        self._cluster = cluster or single_node(free[1])
        self._settings = dict(settings or {})
        self._jars = kafka_jars(release)

    @property
    def bootstrap_servers(self) -> str:
        """Address for Kafka clients."""
        return f"{LOOPBACK}:{self.port}"

    def launch(self) -> None:
        """Start without waiting; the first start formats the storage."""
        self._launch(archive_options(self._jars))

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Return once the broker answers; raise ServerFailed otherwise."""
        if self._child is not None:
            self._child.wait_until(lambda: has_controller(self.port), seconds)

    def record_classes(self, archive: Path) -> None:
        """Start and stop; it writes the class archive at its end, for seconds on a busy machine."""
        self._launch(recording_options(archive))
        self.wait_ready()
        self.signal_stop()
        if self._child is not None:
            self._child.ends_within(RECORDING_SECONDS)
        self.stop()

    @property
    def _logs(self) -> Path:
        return self._home / LOGS

    @property
    def _properties(self) -> Path:
        return self._home / "server.properties"

    def _launch(self, extra: Sequence[str]) -> None:
        self._home.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._write_properties()
        if not (self._logs / "meta.properties").exists():
            self._format()
        self._child = Child(
            self._command("Kafka", [*self._java(extra), "kafka.Kafka", self._properties.name])
        )

    def _write_properties(self) -> None:
        shutil.copyfile(LOG_CONFIG, self._home / LOG_CONFIG.name)
        settings = server_properties(self._cluster, self.node_id, self.port)
        wanted = {**settings, **self._settings}
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in wanted.items()))

    def _format(self) -> None:
        features = features_path(self._jars)
        if self._cluster.size > 1 or not features.exists():
            self._run_storage_tool()
            return
        self._logs.mkdir(exist_ok=True)
        shutil.copyfile(features, self._logs / FEATURES)
        facts = {"version": 1, "cluster.id": self._cluster.id, "node.id": self.node_id}
        lines = [f"{key}={value}\n" for key, value in (facts | {"directory.id": new_id()}).items()]
        made = self._logs / "meta.properties.new"
        made.write_text("".join(lines))
        made.rename(self._logs / "meta.properties")

    def _run_storage_tool(self) -> None:
        tool = [
            "kafka.tools.StorageTool",
            "format",
            "--config",
            self._properties.name,
            f"--cluster-id={self._cluster.id}",
        ]
        run_to_end(
            self._command("Kafka's StorageTool", [*self._java(archive_options(self._jars)), *tool]),
            FORMAT_SECONDS,
        )

    def _java(self, extra: Sequence[str]) -> list[str]:
        return [str(java()), *java_options(self._cluster), *extra, "-cp", class_path(self._jars)]

    def _command(self, name: str, arguments: Sequence[str]) -> Command:
        return Command(
            name=name,
            arguments=arguments,
            log=self._home / "kafka.out",
            environment=CLEAN_ENVIRONMENT,
            folder=self._home,
        )


def features_path(jars: Sequence[Path]) -> Path:
    """Return the path of what the tool says about features; it may not exist."""
    return archive_path(jars).with_suffix(f".{FEATURES}")


def make_class_archive(release: str = "") -> Path:
    """Return the class archive; without it a temporary broker makes it, and the features, first."""
    jars = kafka_jars(release)
    archive, features = archive_path(jars), features_path(jars)
    if not archive.exists():
        with tempfile.TemporaryDirectory(prefix="outbox-class-archive-") as scratch:
            made = archive.with_suffix(".new")
            EmbeddedKafka(Path(scratch), release=release).record_classes(made)
            said = Path(scratch, "data", FEATURES)
            if said.is_file():  # the tool of Kafka 4.4 writes them elsewhere, and is run each time
                copied = features.with_suffix(".new-features")
                shutil.copyfile(said, copied)
                copied.rename(features)
            if made.is_file():
                made.rename(archive)
    return archive
