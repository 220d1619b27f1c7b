"""Tests a group's check endpoint: one signed check of an unknown message, then a forged one.

A simulation sends all conformance cases, as `outbox check simulate` does.

The calls are made like the checker's, with the SSRF guard and the database's time. No answer
decides a message, counts as a check or changes a breaker. The endpoint's body is never returned.
A test may last as long as the endpoint likes, so a process makes few of them at a time.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from api.admin.models.producer_groups import (
    EndpointTestResource,
    SimulationRequest,
    SimulationResource,
)
from api.http.tenant_shares import SLOW_PLACES, TenantShares
from outbox.checks.answer import ANSWERED, Outcome
from outbox.clock import Clock
from outbox.http_checks.conformance import (
    OTHER_SECRET,
    CaseResult,
    EndpointSilent,
    TestedEndpoint,
    never_prepared,
    planned,
    simulate,
)
from outbox.http_checks.endpoint import UNTRUSTED, HttpCheckEndpoint
from outbox.messages.message_id import NONCE_BITS

if TYPE_CHECKING:
    from outbox.postgres.checks.producer_groups import PostgresProducerGroups

NO_ANSWER: Final = frozenset({Outcome.TIMEOUT, Outcome.UNREACHABLE, Outcome.BLOCKED})
REFUSED: Final = frozenset({401, 403})
CASE_SECONDS: Final = 5
"""The longest wait for an answer of a simulation, whatever the group allows."""
SIMULATION_SECONDS: Final = 20


class CheckEndpointProbe:
    """Runs tests; each call opens a connection of its own."""

    def __init__(
        self,
        groups: PostgresProducerGroups,
        endpoint: HttpCheckEndpoint,
        clock: Clock,
    ) -> None:
        self._groups = groups
        self._endpoint = endpoint
        self._clock = clock
        self._slots = TenantShares(SLOW_PLACES)

    async def run(self, name: str, tenant: Hashable) -> EndpointTestResource:
        """Test a group's endpoint, within twice its timeout.

        Raises UnknownGroup, and Problem ``rate-limited`` while others are tested.
        """
        with self._slots.place(tenant, "tests of endpoints"):
            group, now = await self._groups.with_secrets(name)
            seed = secrets.randbits(NONCE_BITS - 1)
            row = never_prepared(TestedEndpoint(group=group, now=now, seed=seed), 0)
            started = self._clock.monotonic()
            [signed] = await self._endpoint.ask(group, [row], now)
            latency = self._clock.monotonic() - started
            other = replace(group, secrets=(OTHER_SECRET,))
            [forged] = await self._endpoint.ask(other, [row], now + timedelta(seconds=latency))
            return EndpointTestResource(
                reachable=signed.outcome not in NO_ANSWER,
                signature_accepted=signed.outcome in ANSWERED,
                forgery_refused=forged.http_status in REFUSED,
                latency_ms=round(latency * 1000),
                outcome=UNTRUSTED if signed.error == UNTRUSTED else signed.outcome.value,
                http_status=signed.http_status,
            )

    async def simulate(
        self, name: str, tenant: Hashable, asked: SimulationRequest
    ) -> SimulationResource:
        """Send every conformance case to a group's endpoint, within SIMULATION_SECONDS.

        What was not sent then has not passed. Raises as ``run`` does.
        """
        with self._slots.place(tenant, "tests of endpoints"):
            group, now = await self._groups.with_secrets(name)
            seconds = min(group.check_timeout_seconds, CASE_SECONDS)
            subject = TestedEndpoint(
                group=replace(group, check_timeout_seconds=seconds),
                now=now,
                seed=secrets.randbits(NONCE_BITS - 1),
                known=asked.transaction_id,
                expected=Outcome[asked.expect],
            )
            cases = planned(subject, batch=group.batch_check)
            done: list[CaseResult] = []
            why = f"not sent: {SIMULATION_SECONDS} s are over"
            try:
                async with asyncio.timeout(SIMULATION_SECONDS):
                    async for result in simulate(self._endpoint, subject, cases, self._clock):
                        # Kept one by one: what was done counts also if the rest cannot be sent.
                        done.append(result)  # noqa: PERF401
            except EndpointSilent as silent:
                why = f"not sent: the endpoint is {silent.outcome.value} ({silent.error})"
            except TimeoutError:
                pass
            unsent = [CaseResult(case.name, False, 0, why) for case in cases[len(done) :]]
            passed = not unsent and all(each.passed for each in done)
            return SimulationResource(passed=passed, cases=[*done, *unsent])
