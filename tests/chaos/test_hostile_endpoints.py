"""Whatever a hostile check endpoint does, only one valid verdict for the id of the check counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from chaos.history.writer import HistoryWriter
from chaos.workload.endpoint import Endpoint
from chaos.workload.hostile_endpoints import HOSTILE_ENDPOINTS, NAME, serve_connection
from chaos.workload.truth import Truth
from outbox.checks.check_round import Outcome, Question
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver
from tests.fixtures_messages import make_group
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.unit.checker.checks.fixtures_queue_rows import make_half

pytestmark = [pytest.mark.chaos, pytest.mark.deep]

TRANSACTION = "client-0-1"
NOTHING = {Outcome.TIMEOUT, Outcome.UNREACHABLE, Outcome.BAD_VERDICT, Outcome.HTTP_ERROR}
TRUTHFUL = {"extra_id", "two_answers", "every_second"}
CHECKS = 4


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    """Return a run's folder whose only transaction was rolled back."""
    (tmp_path / "truth").mkdir()
    (tmp_path / "history").mkdir(exist_ok=True)
    Truth(tmp_path / "truth" / "client-0.sqlite").decide({TRANSACTION: "ROLLBACK"})
    return tmp_path


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
@pytest.mark.parametrize("name", sorted(HOSTILE_ENDPOINTS))
async def test_f14_only_the_true_verdict_of_a_hostile_endpoint_counts(
    truth: Path, name: str, batch: bool
) -> None:
    honest = Endpoint(truth, HistoryWriter(truth, NAME))
    server = await asyncio.start_server(
        partial(serve_connection, HOSTILE_ENDPOINTS[name], honest.answer, count()), "127.0.0.1", 0
    )
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/check"
    group = make_group(check_url=url, check_timeout_seconds=1, batch_check=batch)
    async with server, HttpCheckEndpoint(GuardedResolver(LOOPBACK_ALLOWED)) as endpoint:
        came = Counter(
            [
                (await endpoint.ask(group, [question()], SystemClock().now()))[0].outcome
                for _ in range(CHECKS)
            ]
        )
        server.close()
    believed = {Outcome.ROLLBACK} if name in TRUTHFUL else set()
    assert came.keys() <= NOTHING | believed
    assert (came[Outcome.ROLLBACK] > 0) == bool(believed)


def question() -> Question:
    """Return a check of the transaction."""
    return Question(half=make_half(transaction_id=TRANSACTION), round=1, attempt=1)
