"""The load: requests from several threads, each timed; nothing undecided is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from typing import Any, Final

from cli.invocation.exit_codes import CommandFailed
from cli.service.api_client import ApiClient

HALVES: Final = "/v1/half-messages"
END_BATCH_MAX: Final = 1000
WAIT_SECONDS: Final = 30


class Mode(StrEnum):
    """What one operation is."""

    PREPARE = "prepare"
    """A prepare. What was prepared is rolled back at the end, outside the measurement."""
    CYCLE = "cycle"
    """A prepare and its COMMIT."""
    RELAY = "relay"
    """A prepare and a COMMIT that waits until Kafka has the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send; ``size`` is the bytes of a value."""

    mode: Mode
    messages: int
    size: int
    batch: int
    concurrency: int
    producer_group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The duration of the whole, and of each operation, in seconds."""

    seconds: float
    operations: Sequence[float]

    def percentile(self, share: float) -> float:
        """Return the duration that this share of the operations did not exceed."""
        ordered = sorted(self.operations)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def send(api: ApiClient, load: Load, progress: Callable[[int], None]) -> Measured:
    """Send the load; ``progress`` gets the number of messages that are done.

    Raises ApiProblem or CommandFailed at the first refusal. What the mode `prepare` has prepared is
    rolled back then too; of the other modes the group's checks decide what was not ended.
    """
    timings: list[float] = []
    undecided: list[str] = []
    began, done = monotonic(), 0
    try:
        with _request_threads(load.concurrency) as threads:
            requests = threads.map(lambda size: _timed(api, load, size, undecided), _sizes(load))
            for seconds, size in zip(requests, _sizes(load), strict=True):
                timings.append(seconds)
                done += size
                progress(done)
        return Measured(seconds=monotonic() - began, operations=timings)
    finally:
        if load.mode is Mode.PREPARE:
            _roll_back(api, undecided)


@contextmanager
def _request_threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads for requests; after an error or Ctrl-C no further request is sent."""
    with ThreadPoolExecutor(number) as threads:
        try:
            yield threads
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _sizes(load: Load) -> list[int]:
    """Return the number of messages of each request."""
    whole, last = divmod(load.messages, load.batch)
    return [load.batch] * whole + [last] * bool(last)


def _roll_back(api: ApiClient, message_ids: Sequence[str]) -> None:
    """Decide what a measurement has left undecided."""
    for first in range(0, len(message_ids), END_BATCH_MAX):
        _end(api, message_ids[first : first + END_BATCH_MAX], "ROLLBACK", 0)


def _timed(api: ApiClient, load: Load, size: int, undecided: list[str]) -> float:
    began = monotonic()
    ids = [half["message_id"] for half in _prepare(api, load, size)]
    if load.mode is Mode.PREPARE:
        undecided.extend(ids)
    else:
        _end(api, ids, "COMMIT", WAIT_SECONDS if load.mode is Mode.RELAY else 0)
    return monotonic() - began


def _prepare(api: ApiClient, load: Load, size: int) -> list[dict[str, Any]]:
    """Prepare a request's messages; return the answers."""
    message = {
        "producer_group": load.producer_group,
        "topic": load.topic,
        "value": "x" * load.size,
    }
    if size == 1:
        return [api.post(HALVES, message)]
    return _items(api.post(f"{HALVES}/batch", {"items": [message] * size}))


def _end(api: ApiClient, message_ids: Sequence[str], decision: str, wait: int) -> None:
    headers = {"prefer": f"wait={wait}"} if wait else None
    if len(message_ids) == 1:
        path, body = f"{HALVES}/{message_ids[0]}/end", {"decision": decision}
        ended = [api.post(path, body, headers=headers)]
    else:
        items = [{"message_id": each, "decision": decision} for each in message_ids]
        ended = _items(api.post(f"{HALVES}/end-batch", {"items": items}, headers=headers))
    if wait and any(each["publication"] is None for each in ended):
        raise CommandFailed(f"Kafka did not have every record after {wait} s: see `outbox status`")


def _items(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of a batch. Raises CommandFailed for the first item that was refused."""
    for item in answer["items"]:
        if problem := item.get("problem"):
            raise CommandFailed(f"{problem['title']}: {problem.get('detail', problem['code'])}")
    return [item["result"] for item in answer["items"]]
