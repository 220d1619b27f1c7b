"""The faults and the load of a run depend only on its seed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import islice

import pytest

from chaos.faults import nemeses_by_kind
from chaos.profiles.catalogue import KILL, LONG, PROFILES
from chaos.profiles.fault_mixes import Mix
from chaos.profiles.kafka_releases import HEALED, RELEASE_PROFILES
from chaos.profiles.profile import Profile
from chaos.profiles.schedule import schedule
from chaos.workload.plan import REFUSED_EVERY, RESERVED_HEADER, Ending, Form, units
from outbox.failpoints import arm
from outbox.messages.record import is_reserved

EVERY = {**PROFILES, **RELEASE_PROFILES}
PRINT = """
from chaos.profiles.catalogue import PROFILES
from chaos.profiles.schedule import schedule
from chaos.workload.plan import units
from itertools import islice
print(hash(str(schedule(PROFILES["kill"], 7))) * 0, schedule(PROFILES["kill"], 7)[:50])
print(list(islice(units(7, "client-0-1-0"), 5)))
"""


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_seed_gives_the_same_faults_again_and_another_seed_gives_others(name: str) -> None:
    profile = EVERY[name]
    assert schedule(profile, 1) == schedule(profile, 1)
    assert schedule(profile, 1) != schedule(profile, 2)


def test_neither_faults_nor_work_depend_on_the_interpreters_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("name", sorted(EVERY))
def test_faults_are_in_order_within_the_run_and_have_a_nemesis(name: str) -> None:
    profile, known = EVERY[name], nemeses_by_kind()
    faults = schedule(profile, 3)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(0 <= fault.at <= profile.seconds for fault in faults)
    assert {fault.kind for fault in faults} <= known.keys()


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_failpoint_of_a_profile_exists(name: str) -> None:
    for mix in EVERY[name].mixes:
        for argument, values in mix.choices:
            if argument == "point":
                arm(",".join(str(value) for value in values))
    arm(None)


@pytest.mark.parametrize("name", sorted(RELEASE_PROFILES))
def test_only_the_control_groups_of_leaderless_profiles_skip_the_guard(name: str) -> None:
    always = RELEASE_PROFILES[name].settings.get("OUTBOX_FAILPOINTS", "")
    assert (always == "relay.settle=skip") == name.endswith("-unguarded")
    arm(always)
    arm(None)


@pytest.mark.parametrize("name", ["leaderless", "leaderless-isr"])
def test_a_run_in_which_nothing_hung_proves_nothing_about_what_hangs(name: str) -> None:
    assert HEALED in RELEASE_PROFILES[name].must_reach
    assert HEALED not in RELEASE_PROFILES[f"{name}-unguarded"].must_reach


@pytest.mark.parametrize("name", sorted(EVERY.keys() - {"smoke"}))
def test_a_run_in_which_a_planned_fault_met_nothing_proves_nothing(name: str) -> None:
    """Kills are counted by role, and a leaf that has passed by its retirement.

    A slow machine misses some of ``smoke``.
    """
    wanted = set(EVERY[name].must_reach)
    planned = {mix.kind for mix in EVERY[name].mixes if mix.planned} - {"kill", "pass_leaf"}
    assert {f"fault {kind}" for kind in planned} <= wanted
    assert "entry published" in wanted


def test_planned_faults_happen_at_their_share_of_the_run() -> None:
    mix = Mix(kind="kill", targets=("api-0",), planned=(0.25, 0.5))
    faults = schedule(Profile(name="x", seconds=40.0, mixes=(mix,)), 1)
    assert [(fault.at, fault.target) for fault in faults] == [(10.0, "api-0"), (20.0, "api-0")]


def test_a_mix_has_about_its_configured_rate() -> None:
    mix = Mix(kind="kill", targets=("api-0", "api-1"), per_minute=60)
    faults = schedule(Profile(name="x", seconds=600.0, mixes=(mix,)), 5)
    assert 500 < len(faults) < 700
    assert {fault.target for fault in faults} == {"api-0", "api-1"}


def test_more_than_a_fifth_of_the_kills_hit_relays() -> None:
    lives = {"kill": 1, "kill_young": 2, "failpoint": 2}
    faults = schedule(replace(KILL, seconds=3600.0), 1)
    kills = [(fault.target, lives[fault.kind]) for fault in faults if fault.kind in lives]
    relays = sum(count for target, count in kills if target.startswith("checker"))
    assert relays > 0.2 * sum(count for _, count in kills)


def test_clients_use_batches_repetitions_and_missing_ends() -> None:
    work = list(islice(units(1, "client-0-1-0"), 3000))
    items = [item for unit in work for item in unit.items]
    shares = {e: sum(item.ending is e for item in items) / len(items) for e in Ending}
    assert 0.09 < shares[Ending.NEVER] < 0.11
    assert 0.04 < shares[Ending.TWICE] < 0.06
    assert 0.015 < shares[Ending.CONTRADICTED] < 0.025
    assert 0.025 < sum(item.replayed for item in items) / len(items) < 0.035
    chains = [unit for unit in work if unit.form is Form.CHAIN]
    assert chains
    assert all(len({(i.topic, i.key) for i in chain.items}) == 1 for chain in chains)
    assert len({item.tx for item in items}) == len(items)
    assert max(len(item.value.encode()) for item in items) > 8_000
    assert min(len(item.value) for item in items) == 0


def test_clients_prepare_what_the_api_must_refuse_from_their_first_unit_on() -> None:
    work = list(islice(units(1, "client-0-1-0"), 40))
    refused = [at for at, unit in enumerate(work) if unit.items[0].headers == (RESERVED_HEADER,)]
    assert refused == [0, REFUSED_EVERY + 1]
    assert is_reserved(RESERVED_HEADER[0])


def test_a_long_run_of_minutes_has_each_fault_that_its_states_need() -> None:
    planned = {fault.kind for fault in schedule(replace(LONG.paced(0.01), seconds=600.0), 1)}
    wanted = {state.removeprefix("fault ") for state in LONG.must_reach if "fault " in state}
    assert wanted | {"pass_leaf"} <= planned
