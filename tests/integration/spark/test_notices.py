"""The notice of a run reaches its endpoint in the end: a kill or a dead endpoint only delays it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from socket import create_server
from typing import Any, cast

import pytest

from outbox.clock import SystemClock
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.finding import FindingChanges
from outbox.settings.environment import load_settings
from spark.progress import Progress
from spark.report.store_run import store_and_notify
from spark.run_context import RunContext
from spark.wiring import webhook
from tests.fixtures_waiting import wait_for
from tests.unit.spark.fixtures_reports import make_finding, make_past_run, make_report

pytestmark = pytest.mark.postgres

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
PATIENCE = 60


def run_once(database_url: str, endpoint: str, folder: Path, run_id: str, past: str) -> str:
    """Store a run that found a lost message, after a run with that verdict; return its notes."""
    settings = load_settings(
        {
            "OUTBOX_DATABASE_URL": database_url,
            "OUTBOX_RECONCILE_WEBHOOK_URL": endpoint,
            "OUTBOX_RECONCILE_WEBHOOK_SECRET": SECRET,
            "OUTBOX_CHECK_ALLOW_CIDRS": "127.0.0.0/8",
        },
        {},
    )
    stream, clock = StringIO(), SystemClock()
    nothing = cast("Any", None)
    context = RunContext(
        source=nothing,
        log_reader=nothing,
        run_store=PostgresRunStore(database_url),
        sources=nothing,
        clock=clock,
        progress=Progress(stream=stream, clock=clock),
        pause=lambda _: None,
        notify=webhook(settings),
    )
    finding = make_finding(1)
    known = frozenset({finding.finding_id} if past == "findings" else ())
    report = make_report(
        [finding],
        run_id=run_id,
        folder=folder / run_id,
        past=(make_past_run("before", past),),
        changes=FindingChanges(new=0, resolved=0, known_ids=known),
    )
    store_and_notify(report, context, samples=1)
    return stream.getvalue()


@dataclass
class Endpoint:
    """An endpoint that answers with a status and keeps the notices that it accepted."""

    status: int = 204
    url: str = ""
    runs: list[str] = field(default_factory=list)


@contextmanager
def listening(status: int = 204) -> Iterator[Endpoint]:
    """Yield an endpoint while it listens."""
    endpoint = Endpoint(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert self.headers["webhook-id"] == f"run_{body['data']['run_id']}"
            endpoint.runs.append(body["data"]["run_id"])
            self.send_response(endpoint.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield endpoint
        finally:
            server.shutdown()


def test_the_notice_of_a_killed_run_is_sent_by_the_next_run(
    database_url: str, tmp_path: Path
) -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        arguments = (database_url, url, tmp_path, "one", "clean")
        killed = get_context("spawn").Process(target=run_once, args=arguments)
        killed.start()
        with silent.accept()[0]:
            killed.kill()
            killed.join()
    with listening() as endpoint:
        run_once(database_url, endpoint.url, tmp_path, "two", "findings")
        assert endpoint.runs == ["one"]
        run_once(database_url, endpoint.url, tmp_path, "three", "findings")
    assert endpoint.runs == ["one"]


def test_notices_that_an_endpoint_has_refused_are_sent_later_in_the_order_of_their_runs(
    database_url: str, tmp_path: Path
) -> None:
    with listening(status=410) as refusing:
        for run_id in ("one", "two"):
            notes = run_once(database_url, refusing.url, tmp_path, run_id, "clean")
            assert "not delivered (410" in notes
    assert refusing.runs == ["one", "one", "two"]
    with listening() as endpoint:
        run_once(database_url, endpoint.url, tmp_path, "three", "clean")
        assert wait_for(lambda: endpoint.runs == ["one", "two", "three"])
