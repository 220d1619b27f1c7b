"""Each broken promise is noticed by the test on PostgreSQL that is named for it."""

from __future__ import annotations

import pytest

from tests.integration.mutants.fixtures_mutant import ProductMutant
from tests.integration.mutants.fixtures_mutants import MUTANTS
from tests.integration.mutants.fixtures_product_copy import ProductCopy
from tests.integration.mutants.lists.fixtures_access_mutants import ACCESS_MUTANTS

pytestmark = [pytest.mark.deep, pytest.mark.postgres, pytest.mark.kafka]

MINE = [mutant for mutant in MUTANTS if mutant.needs_postgres and mutant not in ACCESS_MUTANTS]


def test_every_killer_passes_on_the_product_as_it_is(product_on_servers: ProductCopy) -> None:
    product_on_servers.pass_all(mutant.killer for mutant in MINE)


@pytest.mark.parametrize("mutant", MINE, ids=lambda mutant: mutant.promise)
def test_a_broken_promise_is_noticed(
    product_on_servers: ProductCopy, mutant: ProductMutant
) -> None:
    product_on_servers.notice(mutant)
