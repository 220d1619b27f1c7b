"""What an audit must not see of a former life: its commits are in another broker."""

from __future__ import annotations

from typing import Final

from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_database_traits import commits_forgotten
from tests.aged_installation.fixtures_life import Life

PARKED: Final = "DELETE FROM outbox.{} WHERE half_id IN (SELECT half_id FROM outbox.parked_message)"


def forget_former_commits(database_url: str) -> None:
    """Take away what an aged installation has published to another broker."""
    if is_aged():
        commits_forgotten(Life(database_url=database_url))


def forget_former_findings(database_url: str) -> None:
    """Take away everything of an aged installation that an audit names."""
    forget_former_commits(database_url)
    if is_aged():
        for table in ("check_queue", "half_message"):
            Life(database_url=database_url).execute(PARKED.format(table))
        Life(database_url=database_url).execute("DELETE FROM outbox.parked_message")
