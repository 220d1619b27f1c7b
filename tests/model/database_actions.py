"""The relay's actions on PostgreSQL: what may come of each."""

from __future__ import annotations

from collections.abc import Iterator

from outbox.relay_protocol import actions as do
from outbox.relay_protocol import answers as came
from outbox.relay_protocol.publishing import PROGRESS_SECONDS, SIGN_OF_LIFE_SECONDS
from outbox.relay_protocol.state import Failure
from tests.model.postgres import (
    Database,
    Ids,
    positions,
    recover,
    save,
    store_halt,
)
from tests.model.relays import RowRead
from tests.model.scene import (
    FAST_THEN_HISTORY,
    ORPHAN,
    S_ENTRY,
    AtDatabase,
    Fault,
    Outcome,
    message_id,
    named,
    numbers,
    told,
)


def read_row(scene: AtDatabase, _: do.ReadBounds) -> Iterator[Outcome]:
    """Answer with the row; the log's end is read a moment later."""
    row = scene.database.row
    text = told(row.cursor) if row and row.cursor else "nothing"
    yield Outcome(f"ReadBounds: the row says {text}", RowRead(row))


def compare(scene: AtDatabase, asked: do.Compare) -> Iterator[Outcome]:
    """Answer with the commit log of the range and whether it is final."""
    database, to = scene.database, asked.manifest.to
    final = to.xid < database.watermark or not scene.rules.compare_below_watermark
    ids = tuple(i for at, i in positions(database, asked.after) if at <= to)
    answer = came.Compared(tuple(map(message_id, ids)), final, frozenset())
    text = f"Compare: the log says {named(ids)}, {'final' if final else 'not final'}"
    yield Outcome(text, answer)


def recover_batch(scene: AtDatabase, asked: do.Recover) -> Iterator[Outcome]:
    """Learn a batch that Kafka has; wait for a flush that is deciding one of its messages."""
    database = scene.database
    ids = numbers(asked.manifest.published)
    if any(i in flush.ids for flush in database.open for i in ids):
        return
    learned = _learned(scene, ids, asked)
    if learned is None:
        yield Outcome("Recover: overtaken", came.Failed(Failure.OVERTAKEN))
        return
    text = f"Recover: learns batch {asked.manifest.batch_no}, {named(ids)}"
    seen = _seen(scene, ids, asked)
    yield Outcome(text, came.Recovered(), database=learned, reached=seen)


def _learned(scene: AtDatabase, ids: Ids, asked: do.Recover) -> Database | None:
    rules, database = scene.rules, scene.database
    learned = recover(database, ids, asked.cursor)
    if learned is None:
        return None
    if not rules.note_published:
        learned = learned._replace(already_published=database.already_published)
    if not rules.commit_recovered:
        learned = learned._replace(commit_log=database.commit_log, next_xid=database.next_xid)
    return learned


def _seen(scene: AtDatabase, ids: Ids, asked: do.Recover) -> tuple[str, ...]:
    stored = scene.database.row and scene.database.row.cursor
    after_fast = stored and asked.cursor.batch_no > stored.batch_no + 1
    orphan = not all(map(scene.database.has_half, ids))
    return (*((FAST_THEN_HISTORY,) if after_fast else ()), *((ORPHAN,) if orphan else ()))


def save_progress(scene: AtDatabase, asked: do.SaveProgress) -> Iterator[Outcome]:
    """Move the cursor, unless somebody else has moved it further."""
    saved = save(scene.database, asked.cursor)
    if saved is None:
        yield Outcome("SaveProgress: overtaken", came.Failed(Failure.OVERTAKEN))
    else:
        yield Outcome(f"SaveProgress: {told(asked.cursor)}", None, database=saved)


def halt(scene: AtDatabase, asked: do.StoreHalt) -> Iterator[Outcome]:
    """Store the reason."""
    halted = store_halt(scene.database, asked.reason)
    yield Outcome(f"StoreHalt {asked.reason}", None, database=halted)


def read_commits(scene: AtDatabase, asked: do.ReadCommits) -> Iterator[Outcome]:
    """Answer with the next final commits, or that there are none."""
    database, final = scene.database, scene.rules.read_below_watermark
    found = [
        (at, i)
        for at, i in positions(database, asked.after)
        if at.xid < database.watermark or not final
    ][: scene.batch_max]
    if not found:
        yield from _nothing_to_do(scene, asked)
        return
    before = frozenset(message_id(i) for _, i in found if i in database.already_published)
    ids = tuple(message_id(i) for _, i in found)
    answer = came.CommitsRead(0.0, found[-1][0], ids, before)
    reached = (S_ENTRY,) if before else ()
    yield Outcome(f"ReadCommits: {named(numbers(ids))}", answer, reached=reached)


def _nothing_to_do(scene: AtDatabase, asked: do.ReadCommits) -> Iterator[Outcome]:
    for text, at in (("a second has passed", PROGRESS_SECONDS), ("nothing", 0.0)):
        yield Outcome(f"ReadCommits: {text}", came.CommitsRead(at, asked.after, (), frozenset()))
    day = came.CommitsRead(SIGN_OF_LIFE_SECONDS, asked.after, (), frozenset())
    yield Outcome("ReadCommits: a day has passed", day, cost=Fault.SIGN)
