"""A process that dies at any arrow but the relay's breaks no promise."""

from __future__ import annotations

import pytest

from outbox.failpoints import POINTS
from tests.integration.failpoints.fixtures_crashes import PLAIN, run
from tests.integration.failpoints.fixtures_ground import Ground

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos]

API = sorted(point for point in POINTS if point.startswith("api."))
CHECKS = sorted(point for point in POINTS if point.startswith(("checker.", "sweep.")))


@pytest.mark.parametrize("point", API)
def test_an_api_that_dies_at_a_point_keeps_what_it_acknowledged_and_answers_repeats_alike(
    ground: Ground, point: str
) -> None:
    assert run(ground, [point]) > 0


@pytest.mark.parametrize("point", CHECKS)
def test_a_checker_that_dies_at_a_point_loses_no_check_and_decides_once(
    ground: Ground, point: str
) -> None:
    assert run(ground, [point]) > 0


def test_processes_that_die_while_they_admit_what_was_published_in_sql_admit_it_once(
    ground: Ground,
) -> None:
    assert run(ground, PLAIN) > 0
