"""A running ``outbox dev`` for tests: over REST, the topic and the tables."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from outbox.settings.environment import process_environment
from tests.e2e.fixtures_topic_reader import Seen, read_topic
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

READY_SECONDS = 120
FOLDER = "a folder, 100% of #1 (ä) $x ${y} 'a' \"b\" [c] {d} e\\f " + 140 * "g"
FOR_OTHERS = {
    "CLASSPATH": "/nowhere",
    "JAVA_TOOL_OPTIONS": "-Xmx1m",
    "KAFKA_OPTS": "-Xmx1m",
    "PGCHANNELBINDING": "require",
    "PGOPTIONS": "-c statement_timeout=1",
    "PGREQUIREAUTH": "none",
    "PGSERVICE": "none",
    "PGSSLMODE": "require",
    "PGTARGETSESSIONATTRS": "standby",
}
"""What a user has set for other servers."""
_NUMBERS = count(1)


@dataclass(slots=True)
class Service:
    """One ``outbox dev`` and a client for it."""

    data_dir: Path
    process: subprocess.Popen[bytes]
    http: httpx2.Client

    def facts(self) -> dict[str, Any]:
        """Return the current content of dev.json."""
        found: dict[str, Any] = json.loads((self.data_dir / "dev.json").read_text("utf-8"))
        return found

    def new_name(self, what: str) -> str:
        """Return a name that no other test has used."""
        return f"{what}-{next(_NUMBERS)}"

    def new_topic(self, what: str = "topic") -> str:
        """Return the name of a topic that no other test has used; the service creates it."""
        return self.new_name(what)

    def group(self, check_url: str, **fields: Any) -> str:
        """Register a producer group whose first check comes after a second; return its name."""
        name = self.new_name("group")
        quick = {"transaction_timeout_seconds": 1, "check_interval_seconds": 1, "check_max": 3}
        body = {"check_url": check_url, **quick, **fields}
        answer = self.http.put(f"/v1/producer-groups/{name}", json=body)
        assert answer.status_code == 201, answer.text
        return name

    def prepare(self, group: str, topic: str, **fields: Any) -> str:
        """Prepare a half message; return its id."""
        body = {"producer_group": group, "topic": topic, "value": "points", **fields}
        answer = self.http.post("/v1/half-messages", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["message_id"])

    def end(self, message_id: str, decision: str, wait: int | None = None) -> httpx2.Response:
        """End a message; ``wait`` waits for Kafka's acknowledgement."""
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        path = f"/v1/half-messages/{message_id}/end"
        return self.http.post(path, json={"decision": decision}, headers=headers, timeout=60)

    def get(self, message_id: str) -> dict[str, Any]:
        """Return the message resource."""
        answer = self.http.get(f"/v1/half-messages/{message_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait_state(self, message_id: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until the message is in one of the states; return its resource."""

        def look() -> dict[str, Any] | None:
            message = self.get(message_id)
            return message if message["state"] in states else None

        return wait_for(look, seconds) or {}

    def records(self, topic: str, *, committed: bool = True) -> list[Seen]:
        """Return the topic's records."""
        return read_topic(self.facts()["kafka_bootstrap_servers"], topic, committed=committed)

    def answers(self) -> bool:
        """Return True if the API, at its current address, reports ready."""
        self.http.base_url = httpx2.URL(self.facts()["api_url"])
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a query on the service's database."""
        with psycopg.connect(self.facts()["database_url"]) as connection:
            return connection.execute(statement, parameters).fetchall()


@contextmanager
def outbox_dev(
    data_dir: Path, *, options: Sequence[str] = (), **environment: str
) -> Iterator[Service]:
    """Run ``outbox dev`` in ``data_dir`` until the block ends; then it stops cleanly at SIGTERM."""
    outbox = str(Path(sys.executable).parent / "outbox")
    command = [outbox, "dev", "--data-dir", str(data_dir), *options]
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**process_environment(), **environment}
        )
    try:
        wait_for(lambda: (data_dir / "dev.json").exists() or process.poll(), READY_SECONDS)
        assert process.poll() is None, log.read_text("utf-8")[-2000:]
        url = json.loads((data_dir / "dev.json").read_text("utf-8"))["api_url"]
        with httpx2.Client(base_url=url, timeout=60, trust_env=False, verify=NO_TLS) as http:
            yield Service(data_dir=data_dir, process=process, http=http)
    finally:
        stop(process, data_dir)


def stop(process: subprocess.Popen[bytes], data_dir: Path) -> None:
    """Stop it, unless it has ended: it exits with 0, and leaves no process and no ``dev.json``."""
    if process.poll() is not None:
        return
    state = data_dir / "dev.json"
    pids = json.loads(state.read_text("utf-8"))["pids"] if state.exists() else {}
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert not state.exists()
    assert not any(alive(pid) for pid in pids.values())


def alive(pid: int) -> bool:
    """Return True if a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
