"""One table has every problem; each document has the members that a program needs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import api.http.problems
from api.http.page_token import decode_number_token, decode_page_token, encode_page_token
from api.http.problems import (
    KINDS,
    SLUG_OF,
    Problem,
    document,
    headers_of,
    invalid,
    problem_of,
)
from outbox.errors import DatabaseRefused, DatabaseUnavailable, Overloaded, UnknownGroup


def test_a_document_has_the_members_of_rfc_9457_and_ours() -> None:
    problem = invalid("/topic", "is required")
    assert document(problem, "r-1") == {
        "type": "/problems/invalid-request",
        "title": "The request breaks a rule",
        "status": 422,
        "detail": "topic is required",
        "instance": "urn:outbox:request:r-1",
        "code": "invalid-request",
        "retryable": False,
        "request_id": "r-1",
        "errors": [{"pointer": "/topic", "message": "is required"}],
    }


@pytest.mark.parametrize(
    "slug", [slug for slug, kind in KINDS.items() if kind.status in (429, 503)]
)
def test_a_retryable_problem_has_retry_after(slug: str) -> None:
    assert int(headers_of(Problem(slug=slug))["retry-after"]) >= 1
    assert document(Problem(slug=slug), "r")["retryable"]


def test_the_librarys_errors_have_their_slugs() -> None:
    assert problem_of(DatabaseUnavailable("x")).slug == "database-unavailable"
    assert problem_of(Overloaded(3)).retry_after_seconds == 3
    assert problem_of(UnknownGroup("canary")).detail is None
    assert set(SLUG_OF.values()) <= set(KINDS)


def test_every_slug_that_the_code_names_is_in_the_table() -> None:
    folder = Path(inspect.getfile(api.http.problems)).parent
    named = {
        slug
        for path in folder.rglob("*.py")
        for slug in re.findall(r'slug="([a-z-]+)"', path.read_text("utf-8"))
    }
    assert named <= set(KINDS)


def test_a_cursor_is_decoded_and_a_forged_one_is_refused() -> None:
    assert decode_page_token(encode_page_token("billing")) == "billing"
    assert decode_number_token(encode_page_token("77")) == 77
    for forged in ("", "x", "!!!", encode_page_token("77")[:-2], "4pyT"):
        with pytest.raises(Problem) as refused:
            decode_page_token(forged)
        assert refused.value.slug == "cursor-invalid"
    with pytest.raises(Problem):
        decode_number_token(encode_page_token("no number"))


def test_a_refusal_of_postgresql_is_logged_once() -> None:
    with capture_logs() as lines:
        for name in ("t1", "t1", "t2"):
            assert problem_of(DatabaseRefused(f"no right to {name}")).slug == "database-unavailable"
    assert [each["error"] for each in lines] == ["no right to t1", "no right to t2"]
