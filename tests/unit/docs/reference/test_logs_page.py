"""The page of logs has every event once."""

from __future__ import annotations

import re

from outbox.telemetry.events import Event
from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "docs" / "reference" / "logs.md").read_text("utf-8")
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (\w+) \| (.*?) \|", re.MULTILINE)


def test_the_page_has_every_event_once() -> None:
    events = [event for names, _, _ in ROW.findall(PAGE) for event in re.findall(r"\w+", names)]
    assert sorted(events) == sorted(Event)
