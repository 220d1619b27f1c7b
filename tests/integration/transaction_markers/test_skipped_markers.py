"""A leader dies between flush and commit: which releases of Kafka skip its marker (KAFKA-20734).

Sound releases write the marker when the leader is back. The others call the transaction committed
and never write it: its records take the outcome of the next transaction of the same producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from devservers.artifacts import KAFKA_RELEASES, kafka_version
from tests.integration.transaction_markers.fixtures_mortal_brokers import mortal_brokers
from tests.integration.transaction_markers.fixtures_skipped_marker import (
    RECORDS,
    Ending,
    Then,
    Transaction,
    one_kill,
)

pytestmark = [pytest.mark.deep, pytest.mark.kafka]

USUAL = ""
SKIPPING = ("4.3.1", "4.4.0")
SOUND = [each for each in (USUAL, *KAFKA_RELEASES) if each not in SKIPPING]

Fates = Mapping[tuple[Ending, Then], Transaction]


def fates(release: str, folder: Path, mortals: int = 1) -> Fates:
    """Return what became of the transactions of one kill; skip where a release is not fetched."""
    if not kafka_version(release):
        pytest.skip(f"Kafka {release} is not fetched: make kafka KAFKA={release}")
    with mortal_brokers(release, folder, mortals) as brokers:
        return {(each.ending, each.then): each for each in one_kill(brokers)}


@pytest.fixture(scope="module", params=SKIPPING)
def skipped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fates:
    """The transactions of one kill on a release with the defect."""
    return fates(request.param, tmp_path_factory.mktemp("brokers"))


@pytest.mark.parametrize("release", SOUND, ids=lambda release: release or "usual")
def test_a_sound_release_ends_every_transaction_once_its_leader_is_back(
    release: str, tmp_path: Path
) -> None:
    found = fates(release, tmp_path).values()
    assert [each for each in found if each.hanging or each.lost or each.doubled] == []
    assert {each.answer for each in found if each.ending is Ending.COMMIT} == {"OK"}
    assert {each.visible_after for each in found} == {RECORDS}


def test_a_commit_that_said_ok_and_a_fence_leave_every_transaction_open(skipped: Fates) -> None:
    assert {each.answer for each in skipped.values()} == {"OK"}
    assert {each.hanging for each in skipped.values()} == {True}
    assert {each.visible_before for each in skipped.values()} == {0}


def test_an_open_transaction_takes_the_outcome_of_the_next_one(skipped: Fates) -> None:
    assert skipped[Ending.COMMIT, Then.COMMIT].visible_after == RECORDS
    assert skipped[Ending.COMMIT, Then.ABORT].lost
    assert skipped[Ending.COMMIT, Then.SAME_HANDLE_ABORT].lost


def test_a_fenced_transaction_that_is_published_again_appears_twice(skipped: Fates) -> None:
    assert skipped[Ending.FENCE, Then.AGAIN].visible_after == 2 * RECORDS


def test_one_record_that_is_ended_as_the_open_transaction_was_heals_it(skipped: Fates) -> None:
    assert skipped[Ending.COMMIT, Then.HEAL_COMMIT].visible_after == RECORDS
    assert skipped[Ending.FENCE, Then.HEAL_ABORT].visible_after == RECORDS


@pytest.mark.parametrize("release", SKIPPING)
def test_three_replicas_do_not_help_when_the_whole_in_sync_set_dies_at_once(
    release: str, tmp_path: Path
) -> None:
    found = fates(release, tmp_path, mortals=3)
    assert {each.hanging for each in found.values()} == {True}
    assert found[Ending.COMMIT, Then.ABORT].lost
    assert found[Ending.FENCE, Then.AGAIN].doubled
