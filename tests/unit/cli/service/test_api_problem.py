"""A refusal is said once, with the facts that the next step needs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.http.problems import KINDS, Problem, all_invalid, document
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


def test_each_invalid_member_is_named_once_with_its_rule() -> None:
    problem = document(all_invalid([("/topic", "is required"), ("/key", "must be text")]), "r-1")
    assert ApiProblem(422, problem).as_text().splitlines() == [
        "The request breaks a rule (invalid-request)",
        "  topic is required; key must be text",
        "  request_id: r-1",
    ]


@pytest.mark.parametrize("slug", KINDS)
def test_no_refusal_names_a_path_or_a_method_of_the_api(slug: str) -> None:
    text = ApiProblem(KINDS[slug].status, document(Problem(slug=slug), "r-1")).as_text()
    assert re.findall(r"/v1/|/openapi|\b(?:GET|PUT|POST|DELETE)\b|\bETag\b", text) == []
