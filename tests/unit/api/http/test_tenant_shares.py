"""Slow work of one tenant leaves room for another."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from api.http.problems import Problem
from api.http.tenant_shares import SLOW_PLACES, TenantShares


def test_a_tenant_takes_a_part_of_the_places_and_gives_them_back() -> None:
    shares = TenantShares(SLOW_PLACES)
    with ExitStack() as held:
        for tenant in ("many", "many", "one", "another"):
            held.enter_context(shares.place(tenant, "tests"))
        for tenant in ("many", "last"):
            with pytest.raises(Problem), shares.place(tenant, "tests"):
                pass
    with shares.place("last", "tests"):
        pass
