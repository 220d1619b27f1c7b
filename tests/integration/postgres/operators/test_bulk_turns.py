"""Bulk actions of different callers take turns, however many messages and actions one has."""

from __future__ import annotations

from uuid import UUID

import pytest

from outbox.access import NewApiKey, Scope
from outbox.messages.message_id import HalfId
from outbox.operators.bulk_actions import BulkKind, BulkOrder
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.api_keys import PostgresApiKeys
from outbox.postgres.operators.bulk_actions import CHUNK, PostgresBulkActions
from outbox.postgres.sessions.connections import Pool

pytestmark = pytest.mark.postgres


async def begun(
    actions: PostgresBulkActions, messages: int, *groups: int, key_id: str | None = None
) -> UUID:
    """Order an action of a caller of some groups (none: of all groups) on missing messages."""
    order = BulkOrder(
        kind=BulkKind.RECHECK,
        decision=None,
        groups=frozenset(groups) or None,
        asked={},
        action=OperatorAction(operator="o", reason="r", key_id=key_id),
        rate=None,
        delay_seconds=0,
    )
    return await actions.begin(order, [HalfId(2**60 + number) for number in range(messages)])


async def failed(actions: PostgresBulkActions, number: UUID) -> int:
    """Return how many messages of an action were looked at."""
    found = await actions.get(number, None)
    assert found is not None
    return found.failed


async def test_a_chunk_of_each_caller_comes_after_a_chunk_of_another(pool: Pool) -> None:
    actions = PostgresBulkActions(pool)
    large = [await begun(actions, 3 * CHUNK, 1, 2) for _ in range(2)]
    of_all = await begun(actions, CHUNK)
    small = [await begun(actions, 2 * CHUNK, 3), await begun(actions, CHUNK, 3)]
    for _ in range(4):
        assert await actions.advance()
    assert [await failed(actions, each) for each in large] == [2 * CHUNK, 0]
    assert await failed(actions, of_all) == CHUNK
    assert [await failed(actions, each) for each in small] == [CHUNK, 0]
    while await actions.advance():
        pass
    assert [await failed(actions, each) for each in large] == [3 * CHUNK] * 2
    assert [await failed(actions, each) for each in small] == [2 * CHUNK, CHUNK]


async def key_of(pool: Pool, *groups: str, maker: str | None = None) -> str:
    """Create a key of some groups, by another key or by nobody; return its id."""
    asked = NewApiKey(name="k", producer_groups=groups, scopes=(Scope.OPS_FORCE,))
    key, _ = await PostgresApiKeys(pool, b"pepper").create(asked, maker)
    return key.key_id


async def test_keys_that_a_key_created_for_fewer_groups_share_its_turns(pool: Pool) -> None:
    actions = PostgresBulkActions(pool)
    root = await key_of(pool, "a", "b")
    keys = [root, await key_of(pool, "b", "a")]
    keys += [await key_of(pool, name, maker=root) for name in ("a", "b")]
    for key_id, groups in zip(keys, ((1, 2), (1, 2), (1,), (2,)), strict=True):
        await begun(actions, 2 * CHUNK, *groups, key_id=key_id)
    other = await begun(actions, 2 * CHUNK, 3, key_id=await key_of(pool, "c"))
    for _ in range(4):
        assert await actions.advance()
    assert await failed(actions, other) == 2 * CHUNK


async def test_keys_of_all_groups_take_turns_with_each_other(pool: Pool) -> None:
    actions = PostgresBulkActions(pool)
    await begun(actions, 3 * CHUNK, key_id=await key_of(pool, "*"))
    other = await begun(actions, CHUNK, key_id=await key_of(pool, "*"))
    for _ in range(2):
        assert await actions.advance()
    assert await failed(actions, other) == CHUNK
