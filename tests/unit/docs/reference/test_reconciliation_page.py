"""The rule that docs/audit.md shows is a valid one."""

from __future__ import annotations

import json
import re

from spark.findings.topic_rules import rule_of, topic_rules
from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "audit.md").read_text("utf-8")


def test_the_rule_that_is_shown_is_understood() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    rules = topic_rules(json.loads(text))
    assert not rule_of("metrics", rules).ordered
    assert rule_of("invoices.issued", rules).ordered
