"""Checks of one group, sent to an endpoint."""

from __future__ import annotations

from typing import Any

from outbox.checks.answer import CheckAnswer
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.ssrf_guard import policy_of
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import make_row

ELSEWHERE_ALLOWED = policy_of(["192.0.2.0/24"], [], ["1-65535"])
"""Plain HTTP is allowed, but to one network alone."""


def group_at(url: str, **fields: Any) -> ProducerGroup:
    """Return a group whose endpoint has this URL."""
    return make_group(check_url=url, **{"check_timeout_seconds": 1, **fields})


async def ask(endpoint: HttpCheckEndpoint, url: str, **fields: Any) -> CheckAnswer:
    """Ask about one half; return the answer."""
    (answer,) = await endpoint.ask(group_at(url, **fields), [make_row()], SystemClock().now())
    return answer
