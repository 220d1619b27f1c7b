"""What may pass later says when to ask again."""

from __future__ import annotations

import pytest

from api.http.problems import (
    KINDS,
    Problem,
    document,
    headers_of,
)


@pytest.mark.parametrize(
    "slug", [slug for slug, kind in KINDS.items() if kind.status in (429, 503)]
)
def test_a_retryable_problem_has_retry_after(slug: str) -> None:
    assert int(headers_of(Problem(slug=slug))["retry-after"]) >= 1
    assert document(Problem(slug=slug), "r")["retryable"]
