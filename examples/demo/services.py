"""The processes of the demo: account processes that may be killed, and the member service."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from devservers.child import Child, Command
from examples.account_service.__main__ import shared_listener

START_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountService:
    """The start parameters of every process of one account service."""

    name: str
    producer_group: str
    port: int
    outbox_url: str
    database_url: str
    check_secret: str
    api_key: str | None
    logs: Path

    @property
    def url(self) -> str:
        """The address for buyers and check-backs; any process answers."""
        return f"http://127.0.0.1:{self.port}"

    def command(self, number: int) -> Command:
        """Return the command that starts process ``number``."""
        arguments = [sys.executable, "-m", "examples.account_service", "--demo-switches"]
        arguments += ["--port", str(self.port), "--outbox-url", self.outbox_url]
        arguments += ["--group", self.producer_group]
        secrets = {
            "ACCOUNT_DATABASE_URL": self.database_url,
            "ACCOUNT_CHECK_SECRET": self.check_secret,
        }
        if self.api_key:
            secrets["ACCOUNT_API_KEY"] = self.api_key
        log = self.logs / f"{self.name}-{number}.log"
        return Command(
            name=self.name, arguments=arguments, log=log, environment={**os.environ, **secrets}
        )


@dataclass(slots=True)
class Processes:
    """The running processes of one account service; started from the main thread only."""

    service: AccountService
    children: list[Child] = field(default_factory=list)
    deaths: int = 0
    started: int = 0

    def start(self, count: int) -> None:
        """Start ``count`` processes and wait until one answers."""
        for _ in range(count):
            self._start_one()
        self.children[0].wait_until(lambda: is_answering(self.service.url), START_SECONDS)

    def revive(self) -> int:
        """Replace dead processes; return their number."""
        dead = [child for child in self.children if child.exit_code() is not None]
        for child in dead:
            self.children.remove(child)
            self._start_one()
        self.deaths += len(dead)
        return len(dead)

    def stop(self) -> None:
        """Stop all of them."""
        for child in self.children:
            child.signal_stop()
        for child in self.children:
            child.stop()
        self.children.clear()

    def _start_one(self) -> None:
        self.started += 1
        self.children.append(Child(self.service.command(self.started)))


def start_member_service(
    bootstrap_servers: str, topic: str, database_url: str, logs: Path
) -> Child:
    """Start the member service."""
    arguments = [sys.executable, "-m", "examples.member_service", "--topic", topic]
    arguments += ["--bootstrap-servers", bootstrap_servers]
    environment: Mapping[str, str] = {**os.environ, "MEMBER_DATABASE_URL": database_url}
    log = logs / "member.log"
    return Child(Command(name="member", arguments=arguments, log=log, environment=environment))


def reserved_port() -> tuple[socket.socket, int]:
    """Return a free port and the socket that keeps it free for processes that share it."""
    holder = shared_listener(0)
    return holder, int(holder.getsockname()[1])


def is_answering(url: str) -> bool:
    """Return True if an account process answers."""
    try:
        return httpx2.get(f"{url}/livez", trust_env=False, timeout=1.0).status_code == 200
    except httpx2.TransportError:
        return False
