"""The installation of a run that has lived before it."""

from __future__ import annotations

from chaos.run.testbed import Age
from chaos.servers.nodes import PostgresNode
from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids

NOTHING_LISTED = """
UPDATE outbox.progress SET (visible_batch_no, visible_offset) = (batch_no, 0)
WHERE starts_with(name, 'relay:')
"""
"""The former life ended in the mode at_least_once; nothing was listed in the log of the run."""


def lived(node: PostgresNode) -> None:
    """Let the installation of a run live before it."""
    pass_2_32_xids(node.server)
    life = Life(database_url=node.dsn())
    aged_database(life)
    life.execute(NOTHING_LISTED)


def chosen_age() -> Age | None:
    """Return what a run does first on the installation that the session has chosen."""
    return lived if is_aged() else None
