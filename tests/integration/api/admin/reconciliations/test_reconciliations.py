"""Finished reconciliations over HTTP: lists, runs, findings, and their visibility."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.http.page_token import encode_page_token
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import AUDITED, WHO
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import Service
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    make_finding,
    make_run,
    refined,
)

pytestmark = pytest.mark.postgres

RUNS = "/v1/reconciliations"


async def get(service: Service, path: str, **query: Any) -> Any:
    """Return the body of a successful GET."""
    answer = await service.client.get(f"{RUNS}{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_runs_are_listed_newest_first_page_by_page(
    bare_service: Service, database_url: str
) -> None:
    store = PostgresRunStore(database_url)
    assert await get(bare_service, "") == {"data": [], "next_cursor": None, "has_more": False}
    for name in ("one", "two", "three"):
        store.save(make_run(name, verdict="clean", totals={"missing": 0}))
    first = await get(bare_service, "", limit=2)
    rest = await get(bare_service, "", limit=2, cursor=first["next_cursor"])
    assert [run["run_id"] for run in (*first["data"], *rest["data"])] == ["three", "two", "one"]
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    of_another_list = encode_page_token("a finding")
    refused = await bare_service.client.get(RUNS, params={"cursor": of_another_list})
    assert (refused.status_code, refused.json()["code"]) == (400, "cursor-invalid")
    newest = first["data"][0]
    assert (newest["verdict"], newest["totals"], newest["reports"]) == (
        "clean",
        {"missing": 0},
        ["html"],
    )


async def test_a_run_is_shown_as_it_was_printed_and_from_its_row_after_its_report_is_deleted(
    bare_service: Service, database_url: str
) -> None:
    body = {"schema_version": 1, "run_id": "kept", "anything": [1]}
    store = PostgresRunStore(database_url)
    store.save(make_run("kept", reports={"json": json.dumps(body), "html": "<p>page</p>"}))
    store.save(make_run("bare", reports={}, totals={"missing": 2}))
    assert await get(bare_service, "/kept") == body
    bare = await get(bare_service, "/bare")
    assert (bare["run_id"], bare["findings"], bare["findings_omitted"]) == ("bare", [], 2)
    page = await bare_service.client.get(f"{RUNS}/kept/report.html")
    assert (page.text, page.headers["content-type"]) == ("<p>page</p>", "text/html; charset=utf-8")
    assert "sandbox" in page.headers["content-security-policy"]
    gone = await bare_service.client.get(f"{RUNS}/bare/report.html")
    assert (gone.status_code, gone.json()["code"]) == (404, "not-found")


async def test_the_findings_of_a_run_are_listed_with_their_current_status(
    bare_service: Service, database_url: str
) -> None:
    store = PostgresRunStore(database_url)
    store.save(make_run("one", findings=(make_finding("a"), refined("b"))))
    store.save(make_run("two", findings=(refined("b"),)))
    store.save(make_run("three", "c"))

    async def found(run_id: str, **query: Any) -> dict[str, str]:
        page = await get(bare_service, f"/{run_id}/discrepancies", **query)
        return {each["finding_id"]: each["status"] for each in page["data"]}

    assert await found("one") == {"a": "resolved", "b": "resolved"}
    assert await found("three") == {"c": "open"}
    for nothing in ({"kind": "duplicate"}, {"topic": "orders"}):
        assert await found("one", **nothing) == {}
    both = {"topic": "points", "kind": "missing", "finding_class": "LOST"}
    assert await found("one", **both) == await found("one")
    assert await found("one", finding_class="LOST/skipped") == {"b": "resolved"}
    page = await get(bare_service, "/one/discrepancies", limit=1)
    rest = await get(bare_service, "/one/discrepancies", limit=1, cursor=page["next_cursor"])
    assert [each["finding_id"] for each in (*page["data"], *rest["data"])] == ["a", "b"]
    assert rest["has_more"] is False
    assert (page["data"][0]["class"], page["data"][0]["detail"]) == ("LOST", "published")


async def test_an_accepted_finding_does_not_count_until_its_end(
    service: Service, database_url: str, pool: Pool
) -> None:
    unread = make_finding("c", "UNVERIFIABLE/not_read")
    run = make_run("one", findings=(make_finding("a"), make_finding("b"), unread))
    PostgresRunStore(database_url).save(run)
    path = f"{RUNS}/one/discrepancies"
    far = {**WHO, "until": "2099-01-01T00:00:00Z"}
    accepted = await service.client.post(f"{path}/a/accept", json=far)
    assert accepted.status_code == 204, accepted.text
    found = (await service.client.get(path)).json()["data"]
    assert {each["finding_id"]: each["status"] for each in found} == {
        "a": "accepted",
        "b": "open",
        "c": "open",
    }
    assert await select(pool, AUDITED, "finding.accept") == [("finding.accept", *WHO.values(), 1)]
    past = await service.client.post(f"{path}/b/accept", json={**far, "until": "2020-01-01T00:00Z"})
    assert (past.status_code, past.json()["errors"][0]["pointer"]) == (422, "/until")
    for missing in ("c", "nothing"):
        answer = await service.client.post(f"{path}/{missing}/accept", json=far)
        assert answer.status_code == 404
