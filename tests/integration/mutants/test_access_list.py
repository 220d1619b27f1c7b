"""Each route of the contract has a mutant without its scope, and one without its group check."""

from __future__ import annotations

from tests.integration.api.http.authentication.fixtures_routes import ROUTES
from tests.integration.mutants.lists.fixtures_access_mutants import (
    ACCESS_MUTANTS,
    group_killer,
    scope_killer,
)


def test_every_route_has_a_mutant_of_each_of_its_two_checks() -> None:
    killers = {mutant.killer for mutant in ACCESS_MUTANTS}
    assert [each for each in ROUTES if scope_killer(each) not in killers] == []
    assert [each for each in ROUTES if group_killer(each) not in killers] == []
