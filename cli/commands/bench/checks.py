"""The mode `check`: messages without an end, and how long checks take to decide them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Event
from time import monotonic
from typing import Final

from cli.commands.bench.load import (
    HALVES,
    Load,
    Measured,
    prepare,
    request_threads,
    roll_back,
    sizes,
)
from cli.invocation.exit_codes import CommandFailed
from cli.service.api_client import ApiClient

IMMUNITY_SECONDS: Final = 1
PATIENCE_SECONDS: Final = 60
"""Time without any decision after which the rest counts as undecided."""
POLL_SECONDS: Final = 0.2


def wait_for_checks(api: ApiClient, load: Load, progress: Callable[[int], None]) -> Measured:
    """Prepare messages and wait until checks have decided all of them.

    A duration is the time from when a check was due until its decision, both of the service's
    clock. Raises ApiProblem or CommandFailed; what is undecided then is rolled back.
    """
    began = monotonic()
    with request_threads(load.concurrency) as threads:
        answers = threads.map(lambda size: _due(api, load, size), sizes(load))
        due = {message_id: at for answer in answers for message_id, at in answer.items()}
        durations: list[float] = []
        last = monotonic()
        while due and monotonic() - last < PATIENCE_SECONDS:
            Event().wait(POLL_SECONDS)
            found = list(threads.map(lambda message_id: _decided(api, message_id), due))
            decided = {each: at for each, at in zip(list(due), found, strict=True) if at}
            durations += [(at - due.pop(each)).total_seconds() for each, at in decided.items()]
            if decided:
                last = monotonic()
                progress(len(durations))
    if due:
        roll_back(api, list(due))
        raise CommandFailed(
            f"checks decided {len(durations)} of {load.messages} messages; the rest was rolled"
            f" back: see `outbox group test {load.producer_group}`"
        )
    return Measured(seconds=monotonic() - began, operations=durations)


def _due(api: ApiClient, load: Load, size: int) -> Mapping[str, datetime]:
    halves = prepare(api, load, size, check_immunity_seconds=IMMUNITY_SECONDS)
    return {each["message_id"]: datetime.fromisoformat(each["next_check_at"]) for each in halves}


def _decided(api: ApiClient, message_id: str) -> datetime | None:
    found = api.get(f"{HALVES}/{message_id}")["decided_at"]
    return None if found is None else datetime.fromisoformat(found)
