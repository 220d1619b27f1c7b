"""The schemas of docs/schemas describe the checker's requests and the valid answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from outbox.checks.answer import Outcome
from outbox.http_checks.classification import classify
from outbox.http_checks.request import CheckRequest, check_request
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_half, make_row
from tests.unit.outbox.http_checks.fixtures_schemas import SCHEMAS, validator

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
ASKED = "0f6c1c0e-8d0b-4c55-9a54-6f2b7c1d9e10"
VERDICTS = (Outcome.COMMIT, Outcome.ROLLBACK, Outcome.UNKNOWN)


REQUEST, ANSWER = validator("check-request"), validator("check-answer")


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"key": None, "value": None, "transaction_id": None},
        {"key": b"\xff\xfe", "value": b"\x80"},
        {"headers": (("tenant", b"north"), ("a", b"\xff"), ("none", None))},
    ],
    ids=["text", "nothing", "bytes", "headers"],
)
def test_every_form_of_a_request_fits_its_schema(batch: bool, fields: dict[str, Any]) -> None:
    group = make_group(secrets=(SECRET,), batch_check=batch, check_payload=True)
    row = make_row(half=make_half(**fields))
    rows = [row, row] if batch else [row]
    body = json.loads(check_request(group, rows, NOW, "0" * 32).body)
    assert [error.message for error in REQUEST.iter_errors(body)] == []


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 4000),
    st.integers(-1, 4000).map(float),
    st.floats(-1, 4000),
    st.text(max_size=5),
    st.lists(st.none()),
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "message_id": st.just(ASKED),
        "decision": st.sampled_from(["COMMIT", "ROLLBACK", "UNKNOWN", "commit", "", None]),
        "reason": JSON,
        "retry_after_seconds": JSON,
        "more": JSON,
    },
)


@given(MEMBERS)
def test_what_fits_the_schema_is_understood_as_a_verdict(answer: dict[str, Any]) -> None:
    body, headers = json.dumps(answer).encode(), {"Content-Type": "application/json"}
    request = CheckRequest(body=b"", headers={}, message_ids=(ASKED,), batch=False)
    [read] = classify(200, headers, body, request)
    if ANSWER.is_valid(answer):
        assert read.outcome in VERDICTS
    elif answer.get("decision") == "UNKNOWN":
        assert read.outcome is Outcome.BAD_VERDICT


VECTORS = json.loads((SCHEMAS / "check-vectors.json").read_text())["vectors"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_each_vector_follows_the_standard(vector: dict[str, Any]) -> None:
    """Sign again with the reference library; a vector must have this signature."""
    near = vector["timestamp"].isdigit() and abs(int(vector["timestamp"]) - vector["now"]) <= 300
    at = datetime.fromtimestamp(int(vector["timestamp"]) if near else 0, tz=UTC)
    right = Webhook(vector["secret"]).sign(vector["id"], at, vector["body"])
    assert vector["verifies"] == (near and right in vector["signatures"].split())
