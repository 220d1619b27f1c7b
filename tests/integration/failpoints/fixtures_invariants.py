"""The invariants that a crash could break, read from PostgreSQL, Kafka and the answers.

Each function has the name of its invariant; the numbers are those of the crash harness's verdicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.messages.message_id import HalfId, Nonce, message_id_text
from tests.integration.failpoints.fixtures_environment import (
    CHECK_MAX,
    IMMUNITY_SECONDS,
    ConsumedRecord,
    CrashEnvironment,
)
from tests.integration.failpoints.fixtures_producer import truth
from tests.integration.failpoints.fixtures_traffic import Traffic, Transaction

DECISION = {1: "COMMIT", 2: "ROLLBACK"}
PRODUCER, CHECK = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """What PostgreSQL has of one run, by half id."""

    halves: dict[HalfId, tuple[str, str]]
    """Transaction id and message id."""
    ops: dict[HalfId, tuple[str, int, int]]
    """Decision, who decided, and the transaction that wrote it."""
    listed: dict[HalfId, list[int]]
    """The transactions whose commit log entries name it."""
    attempts: dict[HalfId, list[tuple[int, str, bool, bool, float]]]
    """Look id, outcome, counted, applied, seconds after prepare."""
    looks: dict[HalfId, list[int]]
    """Its rows of the check queue."""


def verify(environment: CrashEnvironment, traffic: Traffic, after: int, *, crashes: int) -> int:
    """Verify every invariant on the halves above ``after``; return the number of halves."""
    stored = _read(environment, after)
    by_name = {transaction.id: transaction for transaction in traffic.transactions}
    commits = [half_id for half_id, op in stored.ops.items() if op[0] == "COMMIT"]
    records = environment.new_records(len(commits))
    _acknowledged_is_durable(stored, traffic.transactions)
    _decided_once(stored)
    _published_once(stored, by_name, records)
    _in_order(by_name, stored, records)
    _checked_within_bounds(stored, environment, crashes)
    _one_successor_per_round(stored)
    _only_verdicts_decide(stored)
    return len(stored.halves)


def _acknowledged_is_durable(stored: StoredState, transactions: Sequence[Transaction]) -> None:
    """I5, I4: a transaction has one half, the acknowledged one, and one decision in all answers."""
    names = Counter(name for name, _ in stored.halves.values())
    for transaction in transactions:
        assert len(transaction.message_ids) == 1, f"{transaction.id} got two halves"
        assert names[transaction.id] == 1, f"{transaction.id} has {names[transaction.id]} halves"
        half_id = transaction.half_id
        assert stored.halves[half_id] == (transaction.id, *transaction.message_ids)
        decision = stored.ops[half_id][0]
        assert decision == truth(transaction.id), f"{transaction.id} was decided {decision}"
        if transaction.is_ended:
            assert transaction.decisions == {decision}, f"{transaction.id} got another answer"
    assert names.keys() == {transaction.id for transaction in transactions}


def _decided_once(stored: StoredState) -> None:
    """I11, I17: nothing is undecided; COMMIT is listed once, in its own transaction."""
    assert stored.ops.keys() == stored.halves.keys()
    for half_id, (decision, _, xid) in stored.ops.items():
        expected = [xid] if decision == "COMMIT" else []
        assert stored.listed.get(half_id, []) == expected, f"{half_id}: {decision}"


def _published_once(
    stored: StoredState, by_name: dict[str, Transaction], records: Sequence[ConsumedRecord]
) -> None:
    """I1, I2, I3, I7: every COMMIT is one record of what was prepared, and nothing else is."""
    committed = {
        stored.halves[half_id][1]: by_name[stored.halves[half_id][0]]
        for half_id, op in stored.ops.items()
        if op[0] == "COMMIT"
    }
    times = Counter(record.message_id for record in records)
    assert times == Counter(dict.fromkeys(committed, 1))
    for record in records:
        sent = committed[record.message_id]
        assert (record.topic, record.key, record.value) == (sent.topic, sent.key, sent.value)


def _in_order(
    by_name: dict[str, Transaction], stored: StoredState, records: Sequence[ConsumedRecord]
) -> None:
    """I6: the commits of one producer, topic and key are published in the order of its calls."""
    numbers = defaultdict[tuple[str, str], list[int]](list)
    ordered = {
        stored.halves[half_id][1]
        for half_id, op in stored.ops.items()
        if op[1] == PRODUCER and by_name[stored.halves[half_id][0]].is_in_order
    }
    for record in sorted(records, key=lambda each: (each.partition, each.offset)):
        if record.message_id in ordered:
            numbers[(record.topic, record.key)].append(int(record.value.partition(":")[0]))
    for scope, found in numbers.items():
        assert found == sorted(found), f"{scope} out of order: {found}"


def _checked_within_bounds(
    stored: StoredState, environment: CrashEnvironment, crashes: int
) -> None:
    """I12: no check before the immunity ends, no more than allowed, and each answer is stored."""
    for half_id, attempts in stored.attempts.items():
        assert sum(counted for _, _, counted, _, _ in attempts) <= CHECK_MAX
        assert min(age for *_, age in attempts) >= IMMUNITY_SECONDS
        asked = environment.endpoint.asked[stored.halves[half_id][1]]
        assert len(attempts) <= asked <= len(attempts) + crashes
    for half_id in stored.halves.keys() - stored.attempts.keys():
        assert environment.endpoint.asked[stored.halves[half_id][1]] <= crashes


def _one_successor_per_round(stored: StoredState) -> None:
    """I12: each queue row is asked once, and a half has at most one row that is still to come."""
    for half_id, attempts in stored.attempts.items():
        asked = [look for look, *_ in attempts]
        assert len(set(asked)) == len(asked), f"{half_id}: asked twice from one row: {attempts}"
        assert all(row > max(asked) for row in stored.looks.get(half_id, ()))
    for half_id, rows in stored.looks.items():
        assert len(rows) == 1, f"{half_id}: {rows}"


def _only_verdicts_decide(stored: StoredState) -> None:
    """I13: a half decided by a check has that verdict, applied; no other half has one applied."""
    for half_id, (decision, decided_by, _) in stored.ops.items():
        assert decided_by in (PRODUCER, CHECK)
        applied = [each[1] for each in stored.attempts.get(half_id, ()) if each[3]]
        assert applied == ([decision.lower()] if decided_by == CHECK else [])


def _read(environment: CrashEnvironment, after: int) -> StoredState:
    halves = environment.rows(
        "SELECT half_id, nonce, transaction_id FROM outbox.half_message WHERE half_id > %(after)s",
        after=after,
    )
    ops = environment.rows(
        "SELECT half_id, decision, decided_by, xid FROM outbox.op_message"
        " WHERE half_id > %(after)s",
        after=after,
    )
    listed = environment.rows(
        "SELECT i, xid FROM outbox.commit_log, unnest(half_ids) i WHERE i > %(after)s", after=after
    )
    attempts = environment.rows(
        "SELECT half_id, look_id, outcome, counted, applied,"
        " extract(epoch FROM asked_at - prepared_at)::float8"
        " FROM outbox.check_attempt JOIN outbox.half_message USING (half_id)"
        " WHERE half_id > %(after)s ORDER BY look_id",
        after=after,
    )
    looks = environment.rows(
        "SELECT half_id, id FROM outbox.check_queue WHERE half_id > %(after)s", after=after
    )
    return StoredState(
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
