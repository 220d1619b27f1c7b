"""The page of logs has every event once, with the levels at which the programs write it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from outbox.telemetry.events import Event
from tests.fixtures_paths import PROJECT
from tests.fixtures_source_tree import modules

PAGE = (PROJECT / "docs" / "reference" / "logs.md").read_text("utf-8")
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (\w+) \| (.*?) \|", re.MULTILINE)
LEVEL_OF = {name: name for name in ("debug", "info", "warning", "error", "critical")} | {
    "exception": "error"
}
"""The level of a line by the logger's method."""
CHOSEN_WHILE_RUNNING = {"relay_fenced": {"warning"}, "server_unsafe": {"warning"}}
"""Events whose line does not name them: the observer of the relay chooses among them."""


def shown() -> dict[str, set[str]]:
    """Return the levels of each event on the page."""
    return {
        event: {level, *re.findall(r"At level (\w+)", meaning)}
        for names, level, meaning in ROW.findall(PAGE)
        for event in re.findall(r"\w+", names)
    }


def lines() -> Iterator[tuple[str, str]]:
    """Yield event and level of each call that writes a line."""
    for path in (path for package in ("outbox", "api", "checker") for path in modules(package)):
        for node in ast.walk(ast.parse((PROJECT / path).read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=method),
                    args=[ast.Attribute(value=ast.Name(id="Event"), attr=event), *_],
                ):
                    yield Event[event].value, LEVEL_OF[method]


def test_the_page_has_every_event_once() -> None:
    events = [event for names, _, _ in ROW.findall(PAGE) for event in re.findall(r"\w+", names)]
    assert sorted(events) == sorted(Event)


def test_each_event_has_the_levels_at_which_it_is_written() -> None:
    written: dict[str, set[str]] = {**CHOSEN_WHILE_RUNNING}
    for event, level in lines():
        written.setdefault(event, set()).add(level)
    assert shown() == written
