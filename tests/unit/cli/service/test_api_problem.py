"""A refusal is said once, with the facts that the next step needs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.http.problems import KINDS, Problem, document
from cli.service.api_problem import ApiProblem

ENDED: dict[str, Any] = {
    "type": "/problems/already-ended",
    "title": "The message has been decided",
    "status": 409,
    "code": "already-ended",
    "detail": "The message has been decided",
    "retryable": False,
    "winning_decision": "COMMIT",
    "decided_by": "check",
    "existing_message_id": None,
    "request_id": "r-1",
}


def test_the_facts_of_a_refusal_are_named() -> None:
    assert ApiProblem(409, ENDED).as_text().splitlines() == [
        "The message has been decided (already-ended)",
        "  winning_decision: COMMIT",
        "  decided_by: check",
        "  request_id: r-1",
    ]


def test_a_detail_that_repeats_the_only_error_is_said_once() -> None:
    problem = {
        "title": "Invalid request",
        "code": "invalid-request",
        "detail": "must be 1 to 128 characters",
        "errors": [{"pointer": "/topic", "message": "must be 1 to 128 characters"}],
    }
    assert ApiProblem(422, problem).as_text().splitlines() == [
        "Invalid request (invalid-request)",
        "  /topic: must be 1 to 128 characters",
    ]


@pytest.mark.parametrize("errors", ["text", None, [1], {}])
def test_an_answer_of_a_proxy_with_other_members_is_shown_too(errors: object) -> None:
    assert ApiProblem(502, {"errors": errors}).as_text() == "refused (502)"


@pytest.mark.parametrize("slug", KINDS)
def test_no_refusal_names_a_path_or_a_method_of_the_api(slug: str) -> None:
    text = ApiProblem(KINDS[slug].status, document(Problem(slug=slug), "r-1")).as_text()
    assert re.findall(r"/v1/|/openapi|\b(?:GET|PUT|POST|DELETE)\b|\bETag\b", text) == []
