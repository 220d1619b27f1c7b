"""The invariants that a crash could break, read from PostgreSQL, Kafka and the answers.

Each is named after what must hold; the numbers are those of the crash harness's verdicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.messages.message_id import HalfId, Nonce, message_id_text
from tests.integration.failpoints.fixtures_ground import CHECK_MAX, IMMUNITY_SECONDS, Ground, Seen
from tests.integration.failpoints.fixtures_producer import truth
from tests.integration.failpoints.fixtures_traffic import Traffic, Transaction

DECISION = {1: "COMMIT", 2: "ROLLBACK"}
PRODUCER, CHECK = 1, 2
DECISIVE = frozenset({"commit", "rollback"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Everything of one run that is left in PostgreSQL, by half id."""

    halves: dict[HalfId, tuple[str, str]]
    """Transaction id and message id."""
    ops: dict[HalfId, tuple[str, int, int]]
    """Decision, who decided, and the transaction that wrote it."""
    listed: dict[HalfId, list[int]]
    """The transactions whose commit log entries name it."""
    attempts: dict[HalfId, list[tuple[int, str, bool, bool, float]]]
    """Look, outcome, counted, applied, seconds after prepare."""
    looks: dict[HalfId, list[int]]
    """Its rows of the check queue."""


def verify(ground: Ground, traffic: Traffic, after: int, *, crashes: int) -> int:
    """Hold every invariant against what is left of the halves above ``after``; return how many."""
    left = _read(ground, after)
    by_name = {transaction.id: transaction for transaction in traffic.transactions}
    commits = [half_id for half_id, op in left.ops.items() if op[0] == "COMMIT"]
    records = ground.new_records(len(commits))
    _acknowledged_is_durable(left, traffic.transactions)
    _decided_once(left)
    _published_once(left, by_name, records)
    _in_order(by_name, left, records)
    _checked_within_bounds(left, ground, crashes)
    _one_successor_a_round(left)
    _only_verdicts_decide(left)
    return len(left.halves)


def _acknowledged_is_durable(left: Left, transactions: Sequence[Transaction]) -> None:
    """I5, I4: a transaction has one half, the acknowledged one, and one decision, as all heard."""
    names = Counter(name for name, _ in left.halves.values())
    for transaction in transactions:
        assert len(transaction.message_ids) == 1, f"{transaction.id} was given two halves"
        assert names[transaction.id] == 1, f"{transaction.id} has {names[transaction.id]} halves"
        half_id = transaction.half_id
        assert left.halves[half_id] == (transaction.id, *transaction.message_ids)
        decision = left.ops[half_id][0]
        assert decision == truth(transaction.id), f"{transaction.id} was decided {decision}"
        if transaction.is_ended:
            assert transaction.decisions == {decision}, f"{transaction.id} was told otherwise"
    assert names.keys() == {transaction.id for transaction in transactions}


def _decided_once(left: Left) -> None:
    """I11, I17: nothing is undecided; COMMIT is listed once, in its own transaction."""
    assert left.ops.keys() == left.halves.keys()
    for half_id, (decision, _, xid) in left.ops.items():
        expected = [xid] if decision == "COMMIT" else []
        assert left.listed.get(half_id, []) == expected, f"{half_id}: {decision}"


def _published_once(left: Left, by_name: dict[str, Transaction], records: Sequence[Seen]) -> None:
    """I1, I2, I3, I7: every COMMIT is one record of what was prepared, and nothing else is."""
    committed = {
        left.halves[half_id][1]: by_name[left.halves[half_id][0]]
        for half_id, op in left.ops.items()
        if op[0] == "COMMIT"
    }
    times = Counter(record.message_id for record in records)
    assert times == Counter(dict.fromkeys(committed, 1))
    for record in records:
        sent = committed[record.message_id]
        assert (record.topic, record.key, record.value) == (sent.topic, sent.key, sent.value)


def _in_order(by_name: dict[str, Transaction], left: Left, records: Sequence[Seen]) -> None:
    """I6: a producer's own commits of one topic and key come in the order it made them."""
    numbers = defaultdict[tuple[str, str], list[int]](list)
    mine = {
        left.halves[half_id][1]
        for half_id, op in left.ops.items()
        if op[1] == PRODUCER and by_name[left.halves[half_id][0]].is_in_order
    }
    for record in sorted(records, key=lambda each: (each.partition, each.offset)):
        if record.message_id in mine:
            numbers[(record.topic, record.key)].append(int(record.value.partition(":")[0]))
    for scope, found in numbers.items():
        assert found == sorted(found), f"{scope} out of order: {found}"


def _checked_within_bounds(left: Left, ground: Ground, crashes: int) -> None:
    """I12: not before the immunity ends, not oftener than allowed, and each answer is noted."""
    for half_id, attempts in left.attempts.items():
        assert sum(counted for _, _, counted, _, _ in attempts) <= CHECK_MAX
        assert min(age for *_, age in attempts) >= IMMUNITY_SECONDS
        asked = ground.endpoint.asked[left.halves[half_id][1]]
        assert len(attempts) <= asked <= len(attempts) + crashes
    for half_id in left.halves.keys() - left.attempts.keys():
        assert ground.endpoint.asked[left.halves[half_id][1]] <= crashes


def _one_successor_a_round(left: Left) -> None:
    """I12: swept once, and each look without a verdict left exactly one row for the next."""
    for half_id, looks in left.looks.items():
        attempts = left.attempts.get(half_id, [])
        put_back = sum(outcome not in DECISIVE for _, outcome, *_ in attempts)
        assert len(looks) == 1 + put_back, f"{half_id}: {looks} after {attempts}"
        assert {look for look, *_ in attempts} <= set(looks)
    assert left.attempts.keys() <= left.looks.keys()


def _only_verdicts_decide(left: Left) -> None:
    """I13: who is decided by a check has that verdict, applied; nobody else has one applied."""
    for half_id, (decision, decided_by, _) in left.ops.items():
        assert decided_by in (PRODUCER, CHECK)
        applied = [each[1] for each in left.attempts.get(half_id, ()) if each[3]]
        assert applied == ([decision.lower()] if decided_by == CHECK else [])


def _read(ground: Ground, after: int) -> Left:
    halves = ground.rows(
        "SELECT half_id, nonce, transaction_id FROM outbox.half_message WHERE half_id > %(after)s",
        after=after,
    )
    ops = ground.rows(
        "SELECT half_id, decision, decided_by, xid FROM outbox.op_message"
        " WHERE half_id > %(after)s",
        after=after,
    )
    listed = ground.rows(
        "SELECT i, xid FROM outbox.commit_log, unnest(half_ids) i WHERE i > %(after)s", after=after
    )
    attempts = ground.rows(
        "SELECT half_id, look_id, outcome, counted, applied,"
        " extract(epoch FROM asked_at - prepared_at)::float8"
        " FROM outbox.check_attempt JOIN outbox.half_message USING (half_id)"
        " WHERE half_id > %(after)s ORDER BY look_id",
        after=after,
    )
    looks = ground.rows(
        "SELECT half_id, id FROM outbox.check_queue WHERE half_id > %(after)s", after=after
    )
    return Left(
        halves={
            half_id: (name, message_id_text(half_id, Nonce(nonce)))
            for half_id, nonce, name in halves
        },
        ops={half_id: (DECISION[decision], by, xid) for half_id, decision, by, xid in ops},
        listed=_grouped(listed),
        attempts=_grouped([(half_id, tuple(rest)) for half_id, *rest in attempts]),
        looks=_grouped(looks),
    )


def _grouped(rows: Sequence[tuple[Any, ...]]) -> dict[HalfId, list[Any]]:
    groups = defaultdict[HalfId, list[Any]](list)
    for half_id, value in rows:
        groups[half_id].append(value)
    return dict(groups)
