"""Everything that `outbox dev` runs, and its start order.

Kafka needs the longest time, so it starts first and everything else starts in parallel.
"""

import http.client
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import psycopg

from cli.dev.data_dir import DataDir
from cli.dev.environment import program_environment
from cli.dev.service import Program, Service
from cli.dev.supervisor import describe_exit, stop_all
from cli.service.programs import script
from devservers.errors import ServerFailed
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import single_node
from devservers.loopback import LOOPBACK
from devservers.postgres import EmbeddedPostgres

DATABASE = "outbox"
POLL_SECONDS = 0.05
ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DevOptions:
    """The options of the command line."""

    data_dir: Path
    postgres_bin: Path | None = None
    ports: Mapping[str, int]
    auth: str = "dev-insecure"


class Stack:
    """The servers and programs of one data directory."""

    def __init__(
        self, options: DevOptions, data_dir: DataDir, inherited: Mapping[str, str]
    ) -> None:
        """Choose the ports and prepare every service, without starting one."""
        self.options, self.data_dir = options, data_dir
        self.ports = data_dir.ports(options.ports)
        self.postgres = EmbeddedPostgres(
            data_dir.postgres, port=self.ports["postgres"], binaries=options.postgres_bin
        )
        self.kafka = EmbeddedKafka(
            data_dir.kafka,
            port=self.ports["kafka"],
            cluster=single_node(self.ports["kafka_controller"]),
        )
        self.inherited = inherited
        self.api_key: str | None = None
        self._preparation = self._kafka_preparation()
        self._programs: dict[str, Program] = {}

    @property
    def api_url(self) -> str:
        """Address of the API."""
        return f"http://{LOOPBACK}:{self.ports['api']}"

    @property
    def database_url(self) -> str:
        """Address of the service's database; valid once the cluster exists."""
        return self.postgres.url_of(DATABASE)

    @property
    def services(self) -> dict[str, Service]:
        """The supervised services by their names in `dev.json`."""
        return {"postgres": self.postgres, "kafka": self.kafka, **self._programs}

    def start_servers(self, say: Callable[[str], None]) -> None:
        """Start Kafka without waiting, then PostgreSQL, and migrate the database."""
        from cli.stores.schema import upgrade  # slow to import: Kafka starts first

        self.kafka.launch()
        self._preparation.launch()
        self._start_postgres(say)
        _create_database(self.postgres.database_url)
        upgrade(self.database_url)
        say("PostgreSQL is ready and migrated")

    def make_api_key(self) -> None:
        """With `--auth keys`: create the administrator's key of this folder once."""
        from cli.stores.bootstrap_key import administrator_key

        if self.options.auth == "keys":
            pepper = self.data_dir.secret("auth_pepper")
            self.api_key = self.data_dir.secret(
                "api_key", lambda: administrator_key(self.database_url, pepper, "outbox dev")
            )

    def start_programs(self) -> None:
        """Start the API and the checker without waiting, each with a role of its own."""
        for name in ("api", "checker"):
            environment = program_environment(
                self.inherited,
                self.data_dir,
                database_url=self.postgres.url_of_role(f"outbox_{name}", DATABASE),
                bootstrap_servers=self.kafka.bootstrap_servers,
                ports=self.ports,
                auth=self.options.auth,
            )
            arguments = [script(f"outbox-{name}")]
            program = Program(name, arguments, environment, self.data_dir.log(name))
            self._programs[name] = program
            program.launch()

    def wait_kafka(self) -> None:
        """Return once the broker answers and the topic exists; raises ServerFailed."""
        self.kafka.wait_ready()
        while (code := self._preparation.exit_code()) is None:
            Event().wait(POLL_SECONDS)
        if code != 0:
            raise ServerFailed(f"the topic was not created: {self._preparation.last_words()}")

    def wait_ready(self) -> None:
        """Return once `/readyz` returns 200; raises ServerFailed if a program ends before that."""
        while not is_ready(self.ports["api"]):
            for name, program in self._programs.items():
                code = program.exit_code()
                if code is not None:
                    why = f"{describe_exit(code)}: {program.last_words()}"
                    raise ServerFailed(f"{name} ended during its start: {why}")
            Event().wait(POLL_SECONDS)

    def stop(self) -> None:
        """Stop the programs, then the servers they use."""
        programs = (self._preparation, *self._programs.values())
        stop_all([programs, (self.kafka, self.postgres)])

    def erase(self) -> None:
        """Delete all data; no service may run."""
        self.data_dir.erase()
        self.postgres.erase()

    def _kafka_preparation(self) -> Program:
        """Return the process that creates the topic of the manifests."""
        arguments = [
            sys.executable,
            "-m",
            "cli.dev.progress_topic_setup",
            self.kafka.bootstrap_servers,
        ]
        log = self.data_dir.log("prepare_kafka")
        return Program("prepare_kafka", arguments, self.inherited, log)

    def _start_postgres(self, say: Callable[[str], None]) -> None:
        """Start PostgreSQL; processes of a crashed run may still exist for a moment."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self.postgres.start()
            except ServerFailed as error:
                if attempt == ATTEMPTS:
                    raise
                say(f"{error}; trying again")
            else:
                return


def is_ready(port: int) -> bool:
    """Return whether `/readyz` on this loopback port returns 200."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _create_database(server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if found.fetchone() is None:
            connection.execute(f"CREATE DATABASE {DATABASE}")
