"""An aged database, and the template of all test databases made of it."""

from __future__ import annotations

import psycopg

from tests.aged_installation import fixtures_database_traits as database
from tests.aged_installation.fixtures_choice import is_aged
from tests.aged_installation.fixtures_life import Life
from tests.aged_installation.fixtures_run_traits import chain_of_runs
from tests.fixtures_databases import TEMPLATE, migrate, with_database

OLD_LEAVES: tuple[database.Trait, ...] = (
    database.group_deleted,
    database.messages_parked,
    database.old_commits,
    database.group_paused_for_long,
)


def make_aged_template(server_url: str) -> str:
    """Create the template of all test databases as one that has lived; return its name."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    life = Life(database_url=with_database(server_url, TEMPLATE))
    aged_database(life)
    _free_low_ids(life)
    return TEMPLATE


def install(database_url: str) -> None:
    """Install the product in an empty database; with ``--installation aged`` it has lived."""
    if is_aged():
        aged_database(Life(database_url=database_url))
    else:
        migrate(database_url)


def aged_database(life: Life) -> None:
    """Let an empty database live: every trait that needs no broker."""
    database.migrated_from_an_old_version(life)
    database.held_and_given_up(life)
    database.halted_and_recovered(life)
    database.leaves_retired(life)
    for trait in OLD_LEAVES:
        trait(life)
    chain_of_runs(life)
    database.restored_elsewhere(life)
    database.leaves_missing_ahead(life)


def _free_low_ids(life: Life) -> None:
    """Let the next group and topic have id 1, which tests write without looking it up."""
    for table in ("producer_group", "topic"):
        life.execute(f"ALTER TABLE outbox.{table} ALTER COLUMN id RESTART WITH 1")
