"""The installation of a run that has lived before it."""

from __future__ import annotations

from chaos.run.testbed import Age
from chaos.servers.nodes import PostgresNode
from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids


def lived(node: PostgresNode) -> None:
    """Let the installation of a run live before it."""
    pass_2_32_xids(node.server)
    aged_database(Life(database_url=node.dsn()))


def chosen_age() -> Age | None:
    """Return what a run does first on the installation that the session has chosen."""
    return lived if is_aged() else None
