"""Each rule that refuses a check URL is said in words."""

from __future__ import annotations

from cli.service.api_problem import ApiProblem
from cli.service.check_url_rules import MEANING
from outbox.checks.ssrf_guard import Rule


def test_a_refusal_says_what_its_rule_means() -> None:
    for rule in Rule:
        problem = {"title": "The check URL is not allowed", "rule": rule.value}
        assert ApiProblem(422, problem).as_text().splitlines()[-2:] == [
            f"  rule: {rule.value}",
            f"  {MEANING[rule]}",
        ]
