"""Runs an API and checkers as supervised programs on given servers."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2

from chaos.programs import SCRIPTS, Program, ServiceAddresses, program_environment
from chaos.servers.probes import is_alive
from devservers.loopback import free_ports
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveService:
    """A running API, a checker, and additional checkers."""

    api: Program
    checker: Program
    others: tuple[Program, ...]

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.api.port}/v1"

    def put_group(self, name: str, check_url: str, transaction_timeout: int) -> None:
        """Register a producer group."""
        body = {
            "check_url": check_url,
            "check_interval_seconds": 1,
            "transaction_timeout_seconds": transaction_timeout,
        }
        answer = httpx2.put(
            f"{self.url}/producer-groups/{name}", json=body, timeout=CALL_SECONDS, verify=NO_TLS
        )
        assert answer.status_code == 201, answer.text

    def prepare(self, group: str, topic: str, value: str = "{}") -> httpx2.Response:
        """Prepare a half message."""
        body = {"producer_group": group, "topic": topic, "value": value}
        body["transaction_id"] = uuid4().hex
        return httpx2.post(
            f"{self.url}/half-messages", json=body, timeout=CALL_SECONDS, verify=NO_TLS
        )

    def prepared(self, group: str, topic: str, value: str = "{}") -> str:
        """Prepare a half message; return its id."""
        answer = self.prepare(group, topic, value)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["message_id"])

    def commit(self, message_id: str) -> None:
        """Commit it."""
        url = f"{self.url}/half-messages/{message_id}/end"
        answer = httpx2.post(url, json={"decision": "COMMIT"}, timeout=CALL_SECONDS, verify=NO_TLS)
        assert answer.status_code == 200, answer.text


@contextmanager
def live_service(
    database_url: str, bootstrap: str, folder: Path, *, checkers: Sequence[str] = ("",)
) -> Iterator[LiveService]:
    """Run an API and ``checkers`` for the block, each with these tasks or with all; it is ready."""
    http, spare, *metrics = free_ports(2 + len(checkers))
    addresses = ServiceAddresses(
        database_url=database_url,
        bootstrap_servers=bootstrap,
        pepper=base64.b64encode(os.urandom(32)).decode(),
        encryption_key=base64.b64encode(os.urandom(32)).decode(),
    )

    def program(name: str, http_port: int, metrics_port: int, *arguments: str) -> Program:
        settings = program_environment(
            addresses,
            http_port=http_port,
            metrics_port=metrics_port,
            further={"OUTBOX_AUTH_MODE": "dev-insecure"},
        )
        script = str(SCRIPTS / f"outbox-{name.partition('-')[0]}")
        made = Program(name, [script, *arguments], lambda _: settings, folder)
        made.port = http_port
        stack.callback(made.stop)
        made.start()
        return made

    with ExitStack() as stack:
        api = program("api-0", http, spare)
        checker, *others = (
            program(f"checker-{n}", 0, port, *(["--only", tasks] if tasks else []))
            for n, (port, tasks) in enumerate(zip(metrics, checkers, strict=True))
        )
        wait_for(lambda: is_alive(http), seconds=60)
        yield LiveService(api=api, checker=checker, others=tuple(others))
