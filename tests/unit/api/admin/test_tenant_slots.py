"""Slow work of one tenant leaves room for another."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from api.admin.tenant_slots import TenantSlots
from api.http.problems import Problem


def test_a_tenant_takes_a_part_of_the_slots_and_gives_them_back() -> None:
    slots = TenantSlots("tests", of_a_tenant=2, in_all=3)
    with ExitStack() as held:
        for tenant in ("many", "many", "one"):
            held.enter_context(slots.taken_by(tenant))
        for tenant in ("many", "another"):
            with pytest.raises(Problem), slots.taken_by(tenant):
                pass
    with slots.taken_by("another"):
        pass
