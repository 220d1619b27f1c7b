"""What earlier runs have found and no later run can see: open, unless its topic's rule changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outbox.postgres.reconciliation.run_store import PostgresRunStore
from spark.checks.unverifiable import remaining_findings
from spark.findings.ledger import Ledger
from spark.findings.topic_rules import topic_rules
from tests.integration.postgres.reconciliation.fixtures_stored_runs import (
    make_finding,
    make_run,
    statuses,
)

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    ("rules", "status"), [({"points": {"foreign": "low"}}, "open"), ({}, "resolved")]
)
def test_records_of_strangers_stay_a_finding_as_long_as_the_rule_of_their_topic_forbids_them(
    database_url: str, tmp_path: Path, rules: Mapping[str, Any], status: str
) -> None:
    store = PostgresRunStore(database_url)
    foreign = replace(
        make_finding("a", "FOREIGN/record"),
        kind="unexpected",
        severity="low",
        half_id=None,
        evidence={"records": 3, "partition": 0, "offset": 7},
    )
    store.save(make_run("one", findings=(foreign,)))
    ledger = Ledger(run_id="two", folder=tmp_path, rules=topic_rules(rules))
    own = {each.finding_id for each in remaining_findings(store, ledger)} & {"a"}
    assert own == ({"a"} if status == "open" else set())
    store.save(make_run("two", expired_evidence=ledger.expired_evidence))
    assert statuses(database_url) == {"a": status}
