"""A route without one of its checks of scope and group is noticed by the test named for it."""

from __future__ import annotations

import pytest

from tests.integration.mutants.fixtures_mutant import ProductMutant
from tests.integration.mutants.fixtures_product_copy import ProductCopy
from tests.integration.mutants.lists.fixtures_access_mutants import ACCESS_MUTANTS

pytestmark = [pytest.mark.deep, pytest.mark.postgres, pytest.mark.kafka]


def test_every_killer_passes_on_the_product_as_it_is(product_on_servers: ProductCopy) -> None:
    product_on_servers.pass_all(mutant.killer for mutant in ACCESS_MUTANTS)


@pytest.mark.parametrize("mutant", ACCESS_MUTANTS, ids=lambda mutant: mutant.promise)
def test_a_broken_promise_is_noticed(
    product_on_servers: ProductCopy, mutant: ProductMutant
) -> None:
    product_on_servers.notice(mutant)
