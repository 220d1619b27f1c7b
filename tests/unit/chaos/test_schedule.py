"""A schedule is a pure function of its profile and seed, and only names faults that exist."""

from __future__ import annotations

import pytest

from chaos.faults import FAULTS
from chaos.profiles import PROFILES, Profile
from chaos.schedule import schedule
from outbox.failpoints import POINTS


def test_a_seed_gives_one_schedule_and_another_seed_another() -> None:
    profile = PROFILES["mixed"]
    assert schedule(profile, 1) == schedule(profile, 1) != schedule(profile, 2)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_every_fault_exists_and_lies_inside_the_run(profile: Profile) -> None:
    faults = schedule(profile, 7)
    assert {fault.kind for fault in faults} <= FAULTS.keys()
    assert {fault.point.partition("=")[0] for fault in faults} - {""} <= POINTS
    assert all(fault.at > 0 and fault.at + fault.seconds < profile.seconds for fault in faults)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
