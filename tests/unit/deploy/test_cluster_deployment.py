"""The files of deploy/spark describe the program, the settings and the jars that there are."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from outbox.settings.catalogue import SECRETS
from spark.__main__ import _parser
from tests.fixtures_paths import PROJECT

FOLDER: Final = PROJECT / "deploy" / "spark"
CRON_JOB: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "cronjob.yml").read_text())
POD: Final[dict[str, Any]] = CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
APPLICATION: Final[dict[str, Any]] = yaml.safe_load(
    (FOLDER / "scheduled-application.yml").read_text()
)["spec"]["template"]
PROGRAMS: Final = {"cronjob": CONTAINER, "application": APPLICATION["driver"]}


@pytest.mark.parametrize("arguments", [CONTAINER["args"], APPLICATION["arguments"]])
def test_the_words_are_words_of_the_command(arguments: list[str]) -> None:
    assert _parser().parse_args(arguments).command == "run"


@pytest.mark.parametrize("name", PROGRAMS)
def test_secrets_come_from_the_platform_alone(name: str) -> None:
    program = PROGRAMS[name]
    secret = {f"OUTBOX_{each.upper()}" for each in SECRETS}
    assert {each["name"] for each in program["env"]}.isdisjoint(secret)
    assert program["envFrom"] == [{"secretRef": {"name": "outbox-reconcile"}}]


def test_a_verdict_or_a_wrong_setting_is_not_tried_again() -> None:
    (rule,) = CRON_JOB["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {"operator": "In", "values": [2, 7, 8]}
