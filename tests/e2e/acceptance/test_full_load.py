"""Acceptance: at full load every message ends as its generator planned it."""

from __future__ import annotations

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import Any

import pytest

from tests.e2e.acceptance.fixtures_counts import counts
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_service import Service
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

CHECKS = 4
BATCHES, BATCH, PRODUCERS = 12, 100, 6


def test_a21_under_full_load_every_outcome_is_the_planned_one(service: Service) -> None:
    """Producers work without a pause; each value tells the check endpoint its plan."""

    def verdict(question: dict[str, Any]) -> str:
        return str(json.loads(question["value"])["verdicts"][question["attempt"] - 1])

    with check_endpoint(verdict) as endpoint:
        topic = service.new_topic()
        group = service.group(
            endpoint.url,
            check_payload=True,
            max_inflight=32,
            check_max=CHECKS,
            transaction_timeout_seconds=8,
        )
        batches = [plan_of(number) for number in range(BATCHES)]
        with ThreadPoolExecutor(PRODUCERS) as producers:
            send = partial(send_batch, service, group, topic)
            ids = [each for batch in producers.map(send, batches) for each in batch]
        plans = dict(zip(ids, chain.from_iterable(batches), strict=True))
        expected = Counter((plan.state,) for plan in plans.values())
        wait_for(lambda: counts(service, group).by(2) == expected, 90)
    planned = {
        (message_id, attempt)
        for message_id, plan in plans.items()
        for attempt in range(1, plan.checks + 1)
    }
    asked = Counter((each["message_id"], each["attempt"]) for each in endpoint.questions)
    assert asked.keys() == planned, "none after a final answer of the producer or the endpoint"
    # A busy machine may answer a call too late: its attempt is not spent, and asked about again.
    assert asked.total() <= 1.02 * len(planned)
    committed = [message_id for message_id, plan in plans.items() if plan.state == "PUBLISHED"]
    assert Counter(r.message_id for r in service.records(topic)) == Counter(committed)


@dataclass(frozen=True, kw_only=True)
class MessagePlan:
    """What becomes of one message; the value tells the check endpoint."""

    batch: int
    number: int
    end: str
    verdicts: list[str]

    @property
    def checks(self) -> int:
        """The number of checks that it takes to decide it."""
        if self.end != "UNKNOWN":
            return 0
        final = (n for n, each in enumerate(self.verdicts[:CHECKS], 1) if each != "UNKNOWN")
        return next(final, CHECKS)

    @property
    def state(self) -> str:
        """The state that it ends in."""
        decision = self.verdicts[self.checks - 1] if self.checks else self.end
        return {"COMMIT": "PUBLISHED", "ROLLBACK": "ROLLED_BACK", "UNKNOWN": "PARKED"}[decision]


def plan_of(batch: int) -> list[MessagePlan]:
    """Plan a batch: rates of ROLLBACK and UNKNOWN on the side of the producer and of the check."""
    draw, decisions = random.Random(batch), ["COMMIT", "ROLLBACK", "UNKNOWN"]
    return [
        MessagePlan(
            batch=batch,
            number=number,
            end=draw.choices(decisions, [7, 1, 2])[0],
            verdicts=draw.choices(decisions, [2, 1, 2], k=20),
        )
        for number in range(BATCH)
    ]


def send_batch(service: Service, group: str, topic: str, plans: list[MessagePlan]) -> list[str]:
    """Prepare and end a batch; return the ids."""
    items = [
        {
            "producer_group": group,
            "topic": topic,
            "key": str(plan.number),
            "value": json.dumps(asdict(plan)),
        }
        for plan in plans
    ]
    prepared = service.http.post("/v1/half-messages/batch", json={"items": items})
    ids = [str(item["result"]["message_id"]) for item in prepared.json()["items"]]
    ends = [
        {"message_id": message_id, "decision": plan.end}
        for message_id, plan in zip(ids, plans, strict=True)
    ]
    ended = service.http.post("/v1/half-messages/end-batch", json={"items": ends})
    assert {item["status"] for item in ended.json()["items"]} == {200}
    return ids
