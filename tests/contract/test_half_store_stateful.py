"""Any order of prepares, ends, crashes and restarts agrees with a dictionary.

The dictionary knows each message's content and its first decision, nothing else. A client that does
not learn what came of its call repeats it, as every client must.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from outbox.messages.message import DecidedBy, End, Ended, Message, Prepared, Resolution
from outbox.messages.message_id import HalfId, shard_in
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import PLAN_ONCE, connect, make_pool
from tests.contract.fixtures_half_store_model import Dictionary
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = [pytest.mark.deep, pytest.mark.postgres]

_T = TypeVar("_T")
GROUPS = (make_group("account", id=1), make_group("billing", id=2))
DECISIONS = (Resolution.COMMIT, Resolution.ROLLBACK)
EXAMPLES = count()
"""A part of transaction ids that makes them distinct: all examples share one database."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A drawn prepare: few values, so that repeats are common."""

    group: int
    transaction_id: int | None
    value: int
    key: int
    followers: int


PREPARES = st.builds(
    Asked,
    group=st.integers(0, 1),
    transaction_id=st.one_of(st.none(), st.integers(0, 3)),
    value=st.integers(0, 1),
    key=st.integers(0, 2),
    followers=st.sampled_from([0, 0, 0, 1, 3]),
)
SCOPES = st.sampled_from(
    [None, frozenset({1}), frozenset({2}), frozenset({1, 2}), frozenset[int]()]
)
DECIDERS = st.sampled_from([DecidedBy.PRODUCER, DecidedBy.CHECK, DecidedBy.OPERATOR])
ANY_RESOLUTION = st.sampled_from(list(Resolution))
HALVES: Bundle[HalfId] = Bundle("halves")


class Place:
    """A database; each store has its own pool."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._stack = AsyncExitStack()

    async def open(self) -> PostgresHalfStore:
        """Return a store on new connections, as in a new process."""
        pool = make_pool(self._url, "stateful", pool_max=3, pool_min=1, plans=PLAN_ONCE)
        return PostgresHalfStore(await self._stack.enter_async_context(pool))

    async def close(self) -> None:
        """Close the connections."""
        await self._stack.aclose()

    def commit_log(self) -> list[HalfId]:
        """Return every id of the commit log, in order within each shard."""
        with connect(self._url, "stateful") as connection:
            rows = connection.execute(
                "SELECT i.half_id FROM outbox.commit_log l,"
                " unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n) ORDER BY l.xid, i.n"
            )
            return [row[0] for row in rows]


class StoreMachine(RuleBasedStateMachine):
    """Moves a store and the dictionary together."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._runner = asyncio.Runner()
        self._example = next(EXAMPLES)
        self._dictionary = Dictionary()
        self._before = len(place.commit_log())
        self._store = self._run(place.open())

    def teardown(self) -> None:
        """Compare the commit log, then close everything."""
        log = self._place.commit_log()[self._before :]
        commits = self._dictionary.commits
        try:
            assert sorted(log) == sorted(commits), "I11: a commit is listed once"
            for shard in range(16):
                listed = [half_id for half_id in log if shard_in(half_id) == shard]
                assert listed == [half_id for half_id in commits if shard_in(half_id) == shard]
        finally:
            self._run(self._place.close())
            self._runner.close()

    @rule(target=HALVES, asked=st.lists(PREPARES, min_size=1, max_size=4))
    def prepare(self, asked: list[Asked]) -> Any:
        """One flush of prepares; repeats and twins among them."""
        messages = [self._message(one) for one in asked]
        answers = self._run(self._store.prepare(messages))
        return self._learned(messages, answers)

    @rule(
        ends=st.lists(
            st.tuples(HALVES, ANY_RESOLUTION, DECIDERS, SCOPES, st.integers(0, 9)),
            min_size=1,
            max_size=5,
        )
    )
    def end(
        self, ends: list[tuple[HalfId, Resolution, DecidedBy, frozenset[int] | None, int]]
    ) -> None:
        """One flush of ends; contradictions, foreign callers and guessed ids among them."""
        asked = [
            self._end(half_id, decision, by=by, groups=groups, guessed=luck == 0)
            for half_id, decision, by, groups, luck in ends
        ]
        self._dictionary.check_ended(asked, self._run(self._store.end(asked)))

    @rule(half_id=HALVES, callers=st.lists(st.sampled_from(DECISIONS), min_size=2, max_size=4))
    def race(self, half_id: HalfId, callers: list[Resolution]) -> None:
        """Several callers decide at once: one wins, the others get its decision."""
        known, ends = self._dictionary.messages[half_id], [self._end(half_id, d) for d in callers]
        answers = self._run(_all([self._store.end([end]) for end in ends]))
        ended = [answer for (answer,) in answers if isinstance(answer, Ended)]
        winners = [end for end, one in zip(ends, ended, strict=True) if not one.already_ended]
        assert len(winners) == (known.decision is None)
        for winner in winners:
            self._dictionary.decide(known, winner)
        for end, one in zip(ends, ended, strict=True):
            self._dictionary.check_status(known, one)
            assert one.conflict == (end.decision is not known.decision)

    @rule(half_id=HALVES, decision=st.sampled_from(DECISIONS), turns=st.integers(0, 6))
    def crash_while_ending(self, half_id: HalfId, decision: Resolution, turns: int) -> None:
        """The process dies in the middle; the client repeats its end and gets the true state."""
        end, known = self._end(half_id, decision), self._dictionary.messages[half_id]
        self._crash(lambda: self._store.end([end]), turns)
        (answer,) = self._run(self._store.end([end]))
        assert isinstance(answer, Ended)
        if known.decision is None:
            self._dictionary.decide(known, end)
        self._dictionary.check_status(known, answer)

    @rule(target=HALVES, asked=PREPARES, turns=st.integers(0, 6))
    def crash_while_preparing(self, asked: Asked, turns: int) -> Any:
        """The process dies in the middle; a transaction id makes the repeat harmless."""
        message = self._message(asked)
        self._crash(lambda: self._store.prepare([message]), turns)
        (answer,) = self._run(self._store.prepare([message]))
        if isinstance(answer, Prepared) and answer.half.half_id not in self._dictionary.messages:
            answer = replace(answer, replayed=False)
        return self._learned([message], [answer])

    @rule()
    def restart(self) -> None:
        """The process stops cleanly and starts again."""
        self._run(self._place.close())
        self._store = self._run(self._place.open())

    @invariant()
    def every_message_stands_as_decided(self) -> None:
        """UNKNOWN decides nothing and returns the full state (P21)."""
        known = self._dictionary.messages
        ends = [self._end(half_id, Resolution.UNKNOWN) for half_id in known]
        self._dictionary.check_ended(ends, self._run(self._store.end(ends)))

    def _message(self, asked: Asked) -> Message:
        number = asked.transaction_id
        leader, *followers = [
            make_message(
                GROUPS[asked.group],
                key=b"key-%d" % (asked.key + place),
                value=b"value-%d" % asked.value,
                transaction_id=None if number is None else f"{self._example}-{number}",
            )
            for place in range(1 + asked.followers)
        ]
        return replace(leader, followers=tuple(followers))

    def _learned(self, messages: list[Message], answers: Any) -> Any:
        check = self._dictionary.check_prepared
        new = [check(message, answer) for message, answer in zip(messages, answers, strict=True)]
        return multiple(*(half_id for half_id in new if half_id is not None))

    def _end(
        self,
        half_id: HalfId,
        decision: Resolution,
        *,
        by: DecidedBy = DecidedBy.PRODUCER,
        groups: frozenset[int] | None = None,
        guessed: bool = False,
    ) -> End:
        nonce = self._dictionary.messages[half_id].half.nonce
        return End(
            half_id=half_id,
            nonce=type(nonce)(nonce ^ guessed),
            decision=decision,
            decided_by=by,
            groups=groups,
        )

    def _crash(self, call: Callable[[], Awaitable[object]], turns: int) -> None:
        self._run(_abandon(call, turns))
        self.restart()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


async def _all(calls: list[Awaitable[_T]]) -> list[_T]:
    return await asyncio.gather(*calls)


async def _abandon(call: Callable[[], Awaitable[object]], turns: int) -> None:
    """Start a call, let the loop run this number of times, and cancel it."""
    task = asyncio.ensure_future(call())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


# -- The runs ------------------------------------------------------------------------------------

SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_postgres_answers_as_a_dictionary_would(database_url: str) -> None:
    """A failure is reported as it was found: shrinking it would take minutes of restarts."""
    asyncio.run(_register(database_url))
    run_state_machine_as_test(
        _machine(database_url),
        settings=settings(SETTINGS, max_examples=8, phases=[Phase.generate]),
    )


def _machine(database_url: str) -> type[StoreMachine]:
    class Here(StoreMachine):
        def __init__(self) -> None:
            super().__init__(Place(database_url))

    return Here


async def _register(database_url: str) -> None:
    async with make_pool(database_url, "stateful", pool_max=1) as pool:
        for group in GROUPS:
            await store_group(pool, group)
        await store_topic(pool, "points-earned")
