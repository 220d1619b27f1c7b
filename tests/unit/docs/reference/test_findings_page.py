"""The pages people read say what the code does."""

from __future__ import annotations

import pytest

from outbox.messages.manifest import PREFIX
from spark.columns.manifests import FIELDS
from spark.findings.finding_class import Cause, Kind, Severity
from spark.findings.finding_rules import RULES
from spark.report.document import document
from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_report_schema import SCHEMA
from tests.unit.spark.fixtures_reports import make_finding, make_report

PAGE = (PROJECT / "docs" / "reference" / "findings.md").read_text("utf-8")


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_documented_as_its_rule_has_it(cause: Cause) -> None:
    rule = RULES[cause]
    severity = rule.severity.name.lower()
    row = [cause.finding_class, cause.detail, rule.kind, severity, rule.meaning, rule.action]
    assert f"| {' | '.join(row)} |" in PAGE


def test_the_schema_knows_every_member_of_a_finding_and_every_kind_and_severity() -> None:
    members = SCHEMA["$defs"]["finding"]["properties"]
    (shown,) = document(make_report([make_finding()]), {})["findings"]
    assert set(shown) == set(members)
    assert set(members["kind"]["enum"]) == {kind.value for kind in Kind}
    assert set(members["severity"]["enum"]) == {each.name.lower() for each in Severity}
    assert set(SCHEMA["properties"]["totals"]["propertyNames"]["enum"]) == {*map(str, Kind)}


def test_the_manifests_prefix_is_read_to_its_last_byte() -> None:
    assert sum(size for _, size in FIELDS) == PREFIX.size
