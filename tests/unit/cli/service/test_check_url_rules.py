"""Each rule that refuses a check URL is said in words."""

from __future__ import annotations

import pytest

from cli.service.api_problem import ApiProblem
from cli.service.check_url_rules import MEANING
from outbox.checks.ssrf_guard import Rule


def test_every_rule_has_a_meaning() -> None:
    assert list(MEANING) == list(Rule)


@pytest.mark.parametrize("rule", Rule)
def test_a_refusal_says_what_its_rule_means(rule: Rule) -> None:
    problem = {"title": "The check URL is not allowed", "rule": rule.value}
    assert ApiProblem(422, problem).as_text().splitlines()[-2:] == [
        f"  rule: {rule.value}",
        f"  {MEANING[rule]}",
    ]
