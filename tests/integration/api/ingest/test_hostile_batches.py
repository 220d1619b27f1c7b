"""A batch is bounded before it is judged, so a hostile one costs other callers nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable

import pytest

from api.http.rate_limits import FREE_SECONDS, RefusalPause
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, HALVES, Service, running, settings_for

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("way_in")]

JSON = {"content-type": "application/json"}
EIGHT_MIB = 8 * 2**20 - 100
GOOD = b'{"producer_group":"billing","topic":"invoices.issued","value":"x"}'


def batch(*items: bytes) -> bytes:
    """Return the body of a batch."""
    return b'{"items":[' + b",".join(items) + b"]}"


def filled(unit: bytes, size: int = EIGHT_MIB) -> bytes:
    """Return a list of so many bytes, made of equal elements."""
    return b"[" + b",".join([unit] * ((size - 2) // (len(unit) + 1))) + b"]"


def hostile_batches() -> dict[str, tuple[bytes, int]]:
    """Return batches that cost much to judge, and the status each deserves."""
    return {
        "objects": (b'{"items":' + filled(b"{}") + b"}", 413),
        "texts": (b'{"items":' + filled(b'""') + b"}", 413),
        "one item of objects": (batch(filled(b"{}")), 413),
        "one item of texts": (batch(filled(b'""')), 413),
        "a thousand items of objects": (batch(*[filled(b"{}", 8000)] * 1000), 413),
        "a thousand repeated names": (batch(*[GOOD[:-1] + b',"topic":"a"}'] * 1000), 207),
        "escapes": (batch(b'"' + b"\\\\" * (EIGHT_MIB // 2) + b'"'), 207),
        "nested": (batch(*[b"[" * 400 + b"]" * 400] * 1000), 413),
        "blanks": (b'{"items":[' + b" " * EIGHT_MIB + b"]}", 207),
        "no list": (b'"' + b"x" * EIGHT_MIB + b'"', 422),
    }


async def test_eight_mebibytes_of_anything_are_refused_with_little_work(
    service: Service, pool: Pool, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.http.rate_limits.FREE_SECONDS", float("inf"))  # no answer waits
    for name, (body, status) in hostile_batches().items():
        for path in ("batch", "end-batch"):
            with subtests.test(name, path=path):
                before = time.thread_time()
                answer = await service.client.post(f"{HALVES}/{path}", content=body, headers=JSON)
                spent = time.thread_time() - before
                assert answer.status_code == status, answer.text[:200]
                if status == 207:
                    assert {each["status"] for each in answer.json()["items"]} <= {400, 413, 422}
                assert spent < 5, f"{spent} s of CPU"  # a pass in Python takes 30 s
    assert (await stored(pool))[0] == 0


async def test_a_mebibyte_of_anything_is_refused_on_every_other_route(service: Service) -> None:
    for unit in (b"{}", b'""', b"[]"):
        body = b'{"a":' + filled(unit, 2**20 - 100) + b"}"
        for method, path in (("POST", HALVES), ("PUT", f"{GROUPS}/a"), ("POST", "/v1/api-keys")):
            answer = await service.client.request(method, path, content=body, headers=JSON)
            assert answer.status_code in (413, 422)
            assert len(answer.content) < 100_000


async def test_a_body_is_refused_for_its_form_before_thousands_of_its_rules_are_judged(
    service: Service,
) -> None:
    many = {f"a{number}": 0 for number in range(15_000)}
    for path, body, status in (
        (f"{GROUPS}/a", many, 413),
        (f"{GROUPS}/a", {"topics": [many]}, 413),
        ("/v1/bulk-actions", {"filter": many}, 413),
        ("/v1/bulk-actions", {"filter": {"finding_ids": ["!"] * 10_000}}, 422),
    ):
        method = "PUT" if path.startswith(GROUPS) else "POST"
        answer = await service.client.request(method, path, json=body)
        assert answer.status_code == status, answer.text[:200]
        assert len(answer.json().get("errors", ())) < 10


async def test_the_rate_is_spent_before_an_item_is_judged(database_url: str) -> None:
    rates = {"rate_prepare_per_second": 1, "http_workers": 64}
    twice = b'{"items":[{}],"items":[{}]}'
    async with running(settings_for(database_url, **rates)) as limited:
        at = f"{HALVES}/batch"
        first = await limited.client.post(at, content=batch(*[b"{}"] * 1000), headers=JSON)
        assert {each["status"] for each in first.json()["items"]} == {422}
        for bad in (twice, batch(b"{}")):
            assert (await limited.client.post(at, content=bad, headers=JSON)).status_code == 429


async def test_ends_of_others_go_on_beside_hostile_batches(service: Service) -> None:
    body, answered, ended = hostile_batches()["objects"][0], 0, 0

    async def send() -> None:
        nonlocal answered
        while True:
            answer = await service.client.post(f"{HALVES}/batch", content=body, headers=JSON)
            assert answer.status_code == 413
            answered += 1
            await asyncio.sleep(0)  # no socket is between this client and the service

    message_id = await service.prepared_id()
    hostile = [asyncio.create_task(send()) for _ in range(2)]
    async with asyncio.timeout(60):
        while ended < 20 or not answered:
            assert (await service.end(message_id, "COMMIT")).status_code == 200
            ended += 1
    assert not any(task.done() for task in hostile)
    for task in hostile:
        task.cancel()


@pytest.mark.parametrize("path", ["batch", "end-batch"])
async def test_refused_batches_leave_most_of_the_time_to_others(
    service: Service, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[float]()

    async def wait(pause: RefusalPause, tenant: Hashable, spent_seconds: float) -> None:
        waits.append(spent_seconds)
        await pause_of(pause, tenant, spent_seconds)

    pause_of = RefusalPause.pause
    monkeypatch.setattr(RefusalPause, "pause", wait)
    body = hostile_batches()["a thousand repeated names"][0]
    began = time.monotonic()
    answer = await service.client.post(f"{HALVES}/{path}", content=body, headers=JSON)
    assert answer.status_code == 207
    assert time.monotonic() - began > 5 * sum(waits) > 5 * FREE_SECONDS
