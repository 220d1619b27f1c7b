"""Each broken promise is noticed by the test that is named for it; none of these needs a server."""

from __future__ import annotations

import pytest

from tests.integration.mutants.fixtures_mutant import ProductMutant
from tests.integration.mutants.fixtures_mutants import MUTANTS
from tests.integration.mutants.fixtures_product_copy import ProductCopy

pytestmark = pytest.mark.deep

MINE = [mutant for mutant in MUTANTS if not mutant.needs_postgres]


def test_every_killer_passes_on_the_product_as_it_is(product: ProductCopy) -> None:
    product.pass_all(mutant.killer for mutant in MINE)


@pytest.mark.parametrize("mutant", MINE, ids=lambda mutant: mutant.promise)
def test_a_broken_promise_is_noticed(product: ProductCopy, mutant: ProductMutant) -> None:
    product.notice(mutant)
