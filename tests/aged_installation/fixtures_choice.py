"""Which installation a session of pytest runs on: a young one, or one that has lived."""

from __future__ import annotations

import pytest

from tests.aged_installation.fixtures_young_only import reason_for

YOUNG, AGED = "young", "aged"
_CHOSEN = [YOUNG]


def add_option(parser: pytest.Parser) -> None:
    """Add ``--installation``. No variable OUTBOX_…: a program refuses one that is no setting."""
    parser.addoption(
        "--installation", choices=(YOUNG, AGED), default=YOUNG, help="young, or one that has lived"
    )


def choose(config: pytest.Config) -> None:
    """Remember the option for helpers that have no fixtures."""
    _CHOSEN[0] = config.getoption("--installation")


def is_aged() -> bool:
    """Return whether this session runs on an aged installation."""
    return _CHOSEN[0] == AGED


def skip_young_only(items: list[pytest.Item]) -> None:
    """Skip what can run only on a young installation; the mark or the list says why."""
    for item in items if is_aged() else ():
        mark = item.get_closest_marker("young_only")
        reason = mark.args[0] if mark is not None else reason_for(item.nodeid)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"young only: {reason}"))
