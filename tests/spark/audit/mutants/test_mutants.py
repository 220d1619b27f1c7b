"""Each rule of the reconciliation is needed: without it, a named test fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException

from tests.spark.audit.mutants.fixtures_mutant import Mutant, Needs
from tests.spark.audit.mutants.fixtures_mutants import MUTANTS
from tests.spark.audit.mutants.fixtures_mutated_module import mutated
from tests.spark.fixtures_markers import ON_SPARK, REAL_STORES

pytestmark = pytest.mark.deep

MARKS: Final[dict[Needs, list[Any]]] = {
    Needs.NOTHING: [],
    Needs.SPARK: ON_SPARK,
    Needs.STORES: REAL_STORES,
}
FAILURES: Final = (AssertionError, pytest.fail.Exception, ValueError, PySparkException)
"""How a test fails: it asserts, misses an error, unpacks another number, is refused by Spark."""

EACH: Final = [
    pytest.param(each, id=f"{each.needs}: {each.name}", marks=MARKS[each.needs]) for each in MUTANTS
]


@pytest.mark.parametrize("mutant", EACH)
def test_every_mutant_is_killed_by_the_test_that_must(
    mutant: Mutant, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    record_property("mutant", mutant.name)
    record_property("killer", mutant.killer.__name__)
    wanted = set(inspect.signature(mutant.killer).parameters) - set(mutant.given)
    with mutated(mutant.module, mutant.rule, mutant.broken):
        found = {name: request.getfixturevalue(name) for name in sorted(wanted)}
        with pytest.raises(FAILURES):
            mutant.killer(**found, **mutant.given)


def test_every_rule_is_back_in_place_afterwards() -> None:
    for mutant in MUTANTS:
        before = rules_of(mutant)
        with mutated(mutant.module, mutant.rule, mutant.broken):
            assert rules_of(mutant) != before
        assert rules_of(mutant) == before


def rules_of(mutant: Mutant) -> dict[str, Any]:
    """Return the values and the code of everything in a mutant's module."""
    members = vars(mutant.module).items()
    return {name: getattr(member, "__code__", member) for name, member in members}
