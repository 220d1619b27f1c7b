"""The installation of a run that has lived before it."""

from __future__ import annotations

from collections.abc import Collection

from chaos.run.testbed import Age
from chaos.servers.nodes import PostgresNode
from tests.aged_installation.fixtures_broker_traits import neighbours
from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_log_starts import EXPIRED, log_starts_above_zero
from tests.aged_installation.fixtures_template import aged_database
from tests.aged_installation.fixtures_xids import pass_2_32_xids

NOTHING_LISTED = """
UPDATE outbox.progress SET (visible_batch_no, visible_offset) = (batch_no, %s)
WHERE starts_with(name, 'relay:')
"""
"""The former life ended in the mode at_least_once: the logs of the run begin where it ended."""


class Lived:
    """Both stores have lived; the brokers have no retention that is seen in seconds."""

    def postgres(self, node: PostgresNode) -> None:
        """Let an empty database live, and its server."""
        pass_2_32_xids(node.server)
        life = Life(database_url=node.dsn())
        aged_database(life)
        life.execute(NOTHING_LISTED, EXPIRED)

    def kafka(self, bootstrap: str, topics: Collection[str]) -> None:
        """Let brokers live: the logs of the topics start above 0, and neighbours have left some."""
        log_starts_above_zero(bootstrap, tuple(topics))
        neighbours(bootstrap)


LIVED = Lived()


def chosen_age() -> Age | None:
    """Return what a run does first on the installation that the session has chosen."""
    return LIVED if is_aged() else None
