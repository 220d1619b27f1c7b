"""A PostgreSQL server on loopback.

TCP only, without a unix socket; a random password is stored beside the data (mode 0600). Durability
settings are PostgreSQL's defaults.
"""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from select import select

import psycopg
from psycopg import sql

from devservers.artifacts import RUNTIME, unpack_postgres
from devservers.child import CLEAN_ENVIRONMENT, Child, Command, run_to_end
from devservers.errors import ArtifactsMissing, ServerFailed
from devservers.loopback import LOOPBACK, free_ports
from devservers.server import Server
from devservers.unprivileged import reachable, unprivileged_user

SUPERUSER = "outbox"
DATABASE = "postgres"
START_SECONDS = 30.0
INITDB_SECONDS = 60.0
QUICK_LOGINS = 16
"""The first release that can be told the rounds of a password's hash."""
SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "max_locks_per_transaction": "256",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_min_messages": "warning",
}


class EmbeddedPostgres(Server):
    """One PostgreSQL server as a child process."""

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a server: `port` 0 picks a free port, `binaries` is another `bin` folder."""
        self.port = port or free_ports(1)[0]
        self._user = unprivileged_user()
        super().__init__(reachable(data_dir, self._user))
        self._log = self._home / "postgres.log"
        self._binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}

    @property
    def database_url(self) -> str:
        """Address of the maintenance database, password included."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Return the address of one database, password included."""
        return f"postgresql://{SUPERUSER}:{self._password()}@{LOOPBACK}:{self.port}/{database}"

    def url_of_role(self, role: str, database: str) -> str:
        """Let a role log in with a new password; return its address of a database."""
        password = secrets.token_urlsafe(24)
        statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}")
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement.format(sql.Identifier(role), sql.Literal(password)))
        return f"postgresql://{role}:{password}@{LOOPBACK}:{self.port}/{database}"

    def launch(self) -> None:
        """Start without waiting; the first start creates the cluster."""
        programs = self._programs()
        self._home.mkdir(mode=0o711, parents=True, exist_ok=True)
        if not (self._cluster / "PG_VERSION").exists():
            self._initialise(programs)
        self._child = Child(
            self._command("PostgreSQL", programs / "postgres", self._server_arguments())
        )

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Return once a connection succeeds; raise ServerFailed otherwise."""
        if self._child is not None:
            self._child.wait_until(self._accepts, seconds)

    def kill(self) -> None:
        """Crash it; return when its sessions have ended too, which hold the shared memory.

        They have process groups of their own. Raises ServerFailed if one does not end.
        """
        sessions = [*_children(self.pid)] if self.pid else []
        super().kill()
        for session in sessions:
            with os.fdopen(session), suppress(ProcessLookupError):
                signal.pidfd_send_signal(session, signal.SIGKILL)
                if not select([session], [], [], START_SECONDS)[0]:
                    raise ServerFailed("a session of the killed PostgreSQL does not end")

    @property
    def _cluster(self) -> Path:
        return self._home / "data"

    def _password(self) -> str:
        return (self._home / "password").read_text().strip()

    def _programs(self) -> Path:
        found = self._binaries or unpack_postgres(reachable(RUNTIME / "postgres", self._user))
        if not (found / "postgres").is_file() or not (found / "initdb").is_file():
            raise ArtifactsMissing(f"a PostgreSQL server in {found}")
        return found.resolve()

    def _initialise(self, programs: Path) -> None:
        """Create the cluster under a temporary name, so that an interruption leaves none."""
        scratch = self._home / "data.new"
        shutil.rmtree(scratch, ignore_errors=True)
        password = self._home / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24))
        if self._user is not None:
            self._user.take(scratch)
            shutil.chown(password, self._user.uid, self._user.gid)
        run_to_end(
            self._command("initdb", programs / "initdb", self._initdb_arguments(scratch, password)),
            INITDB_SECONDS,
        )
        scratch.rename(self._cluster)

    def _initdb_arguments(self, cluster: Path, password: Path) -> list[str]:
        return [
            f"--pgdata={cluster}",
            f"--username={SUPERUSER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            *self._quick_logins(),
        ]

    def _quick_logins(self) -> list[str]:
        """Let a client prove a password with one round of hashing, where the server can.

        More rounds protect guessable passwords; these are random, and 4 096 cost 2 ms a login.
        """
        return ["--set=scram_iterations=1"] if _release(self._programs()) >= QUICK_LOGINS else []

    def _server_arguments(self) -> list[str]:
        fixed = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        settings = {**self._settings, **fixed}
        return [
            "-D",
            str(self._cluster),
            *(part for key, value in settings.items() for part in ("-c", f"{key}={value}")),
        ]

    def _command(self, name: str, program: Path, arguments: list[str]) -> Command:
        return Command(
            name=name,
            arguments=[str(program), *arguments],
            log=self._log,
            environment=CLEAN_ENVIRONMENT,
            run_as=self._user,
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGQUIT,
        )

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.database_url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _children(pid: int) -> Iterator[int]:
    """Yield a file descriptor of each child that runs (pidfd_open(2))."""
    with suppress(FileNotFoundError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                yield os.pidfd_open(int(child))


def _release(programs: Path) -> int:
    """Return the major release of a server, whose answer is like ``postgres (PostgreSQL) 18.4``."""
    answer = subprocess.run([programs / "postgres", "--version"], capture_output=True, check=True)
    return int(answer.stdout.split()[2].partition(b".")[0])
