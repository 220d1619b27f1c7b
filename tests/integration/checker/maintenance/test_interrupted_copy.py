"""A copy of the default leaves that is interrupted or changed goes on, or is begun again."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from outbox.failpoints import arm
from outbox.messages.message import State
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.maintenance.readiness import newest_revision
from outbox.postgres.sessions.connections import make_pool
from tests.fixtures_databases import as_role, migrate
from tests.fixtures_dying import exit_code_of
from tests.fixtures_paths import PROJECT
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_many_rows import (
    KEPT_IN_ALL,
    WITHOUT_LEAF,
    Filled,
    at_once,
    fill,
    finish,
    has_all,
    next_step,
    steps_until,
    touched,
)
from tests.integration.checker.maintenance.fixtures_old_leaves import NEXT_LEAF

pytestmark = pytest.mark.postgres

LATER = """
from alembic import op

revision, down_revision = "9999", "{}"


def upgrade() -> None:
    op.execute("ALTER TABLE outbox.op_message ADD COLUMN later integer")
"""


def _die(database_url: str) -> None:
    async def create() -> None:
        arm("leaves.after_create=kill")
        async with make_pool(as_role(database_url, "outbox_checker"), "dies", pool_max=2) as pool:
            await PostgresPartitions(pool).create_ahead(2)

    asyncio.run(create())


@pytest.mark.parametrize("step", ["stage", "mirror", "copy", "compare", "replace", "end"])
async def test_a_checker_that_dies_after_any_step_is_followed_by_one_that_goes_on(
    world: World, database_url: str, step: str
) -> None:
    filled = await fill(world)
    await steps_until(world, step)
    assert await exit_code_of(_die, database_url) == -signal.SIGKILL
    halves = await at_once(world, "between")
    await finish(world)
    assert await world.states(halves) == [State.COMMITTED, State.PREPARED]
    assert await has_all(world, filled)


async def test_two_checkers_do_not_disturb_one_another(world: World) -> None:
    filled = await fill(world)
    await asyncio.gather(finish(world), finish(world))
    assert await has_all(world, filled)


def with_later_migration(folder: Path) -> Path:
    """Return a copy of the migrations with one more: it adds a column to a partitioned table."""
    shutil.copytree(PROJECT / "migrations", folder)
    (folder / "versions/9999_later.py").write_text(LATER.format(newest_revision()))
    return folder


@pytest.mark.parametrize("step", ["copy", "replace"])
async def test_a_copy_that_takes_long_has_a_leaf_for_what_comes_meanwhile(
    world: World, database_url: str, step: str
) -> None:
    filled = await fill(world)
    await steps_until(world, step)
    for number in range(3):
        await world.execute(NEXT_LEAF)
        assert await next_step(world) == "stage"
        await steps_until(world, step)
        await at_once(world, f"in leaf {number}")
    await nothing_new_is_read_under_the_lock(world, database_url, filled)


async def nothing_new_is_read_under_the_lock(
    world: World, database_url: str, filled: Filled
) -> None:
    """Go on to the end; nothing but what is kept of removed leaves is read where others wait."""
    await steps_until(world, "replace")
    ((kept,),) = await world.rows(KEPT_IN_ALL, first=filled.first)
    assert touched(database_url, "SELECT outbox.replace_defaults()") <= kept
    await finish(world)
    assert await has_all(world, filled)


@pytest.mark.parametrize("step", ["mirror", "copy", "compare", "replace"])
async def test_a_copy_that_nobody_went_on_with_for_many_leaves_is_begun_again(
    world: World, database_url: str, step: str
) -> None:
    filled = await fill(world)
    await steps_until(world, step)
    await world.execute(WITHOUT_LEAF)
    halves = await at_once(world, "without a checker")
    await nothing_new_is_read_under_the_lock(world, database_url, filled)
    assert await world.states(halves) == [State.COMMITTED, State.PREPARED]


async def test_a_migration_ends_a_copy_that_would_not_have_its_columns(
    world: World, database_url: str, tmp_path: Path
) -> None:
    filled = await fill(world)
    await steps_until(world, "replace")
    later = with_later_migration(tmp_path / "migrations")
    with psycopg.connect(database_url) as reader:
        reader.execute("LOCK TABLE outbox.half_message_default IN ACCESS SHARE MODE")
        with pytest.raises(OperationalError, match="lock timeout"):
            await asyncio.to_thread(migrate, database_url, "9999", later)
    await asyncio.to_thread(migrate, database_url, "9999", later)
    halves = await at_once(world, "migrated")
    await finish(world)
    assert await world.states(halves) == [State.COMMITTED, State.PREPARED]
    assert await has_all(world, filled)


async def test_a_copy_that_somebody_has_changed_is_begun_again(world: World) -> None:
    filled = await fill(world)
    await steps_until(world, "compare")
    await world.execute(
        "DELETE FROM outbox.half_message_next WHERE half_id = %(id)s", id=filled.first
    )
    await finish(world)
    assert await has_all(world, filled)
