"""A process that is killed at any failpoint except the relay's breaks no promise."""

from __future__ import annotations

import pytest

from outbox.failpoints import POINTS
from tests.integration.failpoints.fixtures_crashes import SQL_MODE, run
from tests.integration.failpoints.fixtures_environment import CrashEnvironment

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.chaos, pytest.mark.deep]

API = sorted(point for point in POINTS if point.startswith("api."))
CHECKS = sorted(point for point in POINTS if point.startswith(("checker.", "sweep.")))


@pytest.mark.parametrize("point", API)
def test_an_api_killed_at_a_point_keeps_what_it_acknowledged_and_answers_repeats_alike(
    environment: CrashEnvironment, point: str
) -> None:
    assert run(environment, [point]) > 0


@pytest.mark.parametrize("point", CHECKS)
def test_a_checker_killed_at_a_point_loses_no_check_and_decides_once(
    environment: CrashEnvironment, point: str
) -> None:
    assert run(environment, [point]) > 0


def test_processes_killed_while_they_admit_sql_messages_admit_them_once(
    environment: CrashEnvironment,
) -> None:
    assert run(environment, SQL_MODE) > 0
