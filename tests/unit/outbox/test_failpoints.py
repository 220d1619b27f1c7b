"""Failpoints: the list equals the points in the code, and each action has its effect."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from outbox.errors import ConfigurationError
from outbox.failpoints import POINTS, FailpointRaised, arm, hit
from tests.fixtures_paths import PROJECT

CALL = re.compile(
    r'(?:hit\(|: |point = )"((?:api|relay|checker|sweep|plain|retire|leaves)\.[a-z_.]+)"'
)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm(None)


def test_every_point_of_the_list_is_in_the_code_and_none_is_missing() -> None:
    called: set[str] = set()
    for package in ("api", "checker", "outbox"):
        for path in (PROJECT / package).rglob("*.py"):
            if path.name != "failpoints.py":
                called.update(CALL.findall(path.read_text("utf-8")))
    assert called == POINTS


def test_skip_omits_a_step_and_raise_fails_it() -> None:
    arm("relay.lock=skip, relay.after_lock=raise")
    assert hit("relay.lock")
    with pytest.raises(FailpointRaised):
        hit("relay.after_lock")


def test_the_nth_passage_alone_counts() -> None:
    arm("relay.lock=skip#3")
    assert [hit("relay.lock") for _ in range(4)] == [False, False, True, False]


@pytest.mark.parametrize("text", ["relay.lock", "relay.lock=explode", "relay.nowhere=kill"])
def test_an_unknown_form_or_point_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="OUTBOX_FAILPOINTS"):
        arm(text)
