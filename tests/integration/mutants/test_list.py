"""The list of mutants fits the product as it is: each text, each killer, each room."""

from __future__ import annotations

import re

import pytest

from tests.fixtures_paths import PROJECT
from tests.integration.mutants.fixtures_mutant import ProductMutant
from tests.integration.mutants.fixtures_mutants import MUTANTS

AT_LEAST = 60
ROOMS = (
    "outbox/messages",
    "outbox/checks",
    "outbox/http_checks",
    "outbox/relay",
    "outbox/kafka",
    "outbox/settings",
    "outbox/telemetry",
    "outbox/postgres/messages",
    "outbox/postgres/checks",
    "outbox/postgres/relay",
    "outbox/postgres/maintenance",
    "outbox/postgres/operators",
    "outbox/postgres/reconciliation",
    "outbox/postgres/sessions",
    "migrations",
    "api/guard.py",
    "api/ingest",
    "api/http",
    "api/admin",
    "api/console",
    "checker/checks",
    "checker/relay",
    "checker/maintenance",
    "cli/commands",
    "cli/service",
    "outbox_client",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise)
def test_a_mutants_text_occurs_exactly_once_and_its_killer_exists(mutant: ProductMutant) -> None:
    assert (PROJECT / mutant.file).read_text("utf-8").count(mutant.rule) == 1
    assert mutant.broken != mutant.rule
    path, _, test = mutant.killer.partition("::")
    name = re.escape(test.partition("[")[0])
    text = (PROJECT / path).read_text("utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE)


def test_every_room_has_a_mutant_and_no_two_break_the_same_promise() -> None:
    files = [mutant.file for mutant in MUTANTS]
    assert [room for room in ROOMS if not any(file.startswith(room) for file in files)] == []
    assert len({mutant.promise for mutant in MUTANTS}) == len(MUTANTS) >= AT_LEAST
    assert any(file.endswith(".sql") for file in files)
