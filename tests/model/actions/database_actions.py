"""The relay's actions on PostgreSQL: what may come of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from outbox.messages.manifest import START, Kind, Position
from outbox.messages.message_id import SHARDS
from outbox.relay.protocol import actions, answers
from outbox.relay.protocol.publication import PROGRESS_SECONDS, SIGN_OF_LIFE_SECONDS
from outbox.relay.protocol.state import Cursor, Failure, Progress, first_gen
from tests.model.relays import RowRead
from tests.model.scene import (
    FAST_THEN_HISTORY,
    INSTALLATION,
    K_ENTRY,
    LEFT,
    ORPHAN,
    RELEASE,
    REPLAYED_RELEASE,
    S_ENTRY,
    AtDatabase,
    Fault,
    Outcome,
    cursor_text,
    message_id,
    named,
    numbers,
)
from tests.model.stores.postgres import (
    IDENTITY,
    Database,
    Held,
    Ids,
    hold,
    leave_id,
    mark_released,
    open_held,
    owns,
    positions,
    postpone,
    recover,
    save,
    store_halt,
)


def read_row(scene: AtDatabase, _: actions.ReadBounds) -> Iterator[Outcome]:
    """Answer with the row; the log's end is read a moment later."""
    row = scene.database.row
    text = cursor_text(row.cursor) if row and row.cursor else "nothing"
    yield Outcome(f"ReadBounds: the row has {text}", RowRead(row))


def identify(scene: AtDatabase, _: actions.IdentifyStores) -> Iterator[Outcome]:
    """Answer that the stores are the known ones; a search ends at the first halt."""
    row = scene.database.row
    number = row.cursor.number if row and row.cursor else 0
    known = Progress(Cursor(START, 0, 0, 0, first_gen(number)), IDENTITY, None)
    answer = answers.StoresIdentified(INSTALLATION, IDENTITY, SHARDS, known)
    yield Outcome(f"IdentifyStores: transactional id {number}", answer)


def leave(scene: AtDatabase, asked: actions.LeaveTransactionalId) -> Iterator[Outcome]:
    """Store the next transactional id, unless another relay has begun a generation."""
    left = leave_id(scene.database, asked.gen)
    if left is None:
        yield Outcome("LeaveTransactionalId: overtaken", answers.Failed(Failure.OVERTAKEN))
    else:
        yield Outcome("LeaveTransactionalId", None, database=left, reached=(LEFT,))


def compare(scene: AtDatabase, asked: actions.Compare) -> Iterator[Outcome]:
    """Answer with the commit log of the range and whether it is final."""
    database, to = scene.database, asked.manifest.to
    final = to.xid < database.watermark or not scene.rules.compare_below_watermark
    ids = tuple(i for at, i in positions(database, asked.after) if at <= to)
    held = frozenset(message_id(row.message) for row in database.held)
    answer = answers.Compared(tuple(map(message_id, ids)), final, held)
    text = f"Compare: the log has {named(ids)}, {'final' if final else 'not final'}"
    yield Outcome(text, answer)


def recover_batch(scene: AtDatabase, asked: actions.Recover) -> Iterator[Outcome]:
    """Learn a batch that Kafka has; wait for a flush that is deciding one of its messages."""
    database = scene.database
    ids = numbers(asked.manifest.published)
    if any(i in flush.ids for flush in database.open for i in ids):
        return
    learned = _learned(scene, ids, asked)
    if learned is None:
        yield Outcome("Recover: overtaken", answers.Failed(Failure.OVERTAKEN))
        return
    text = f"Recover: learns batch {asked.manifest.batch_no}, {named(ids)}"
    seen = _seen(scene, ids, asked)
    yield Outcome(text, answers.Stored(), database=learned, reached=seen)


def _learned(scene: AtDatabase, ids: Ids, asked: actions.Recover) -> Database | None:
    rules, database = scene.rules, scene.database
    learned = recover(database, ids, asked.cursor)
    if learned is None:
        return None
    if not rules.note_published:
        learned = learned._replace(already_published=database.already_published)
    if not rules.mark_in_history:
        learned = learned._replace(held=database.held)
    if not rules.commit_recovered:
        learned = learned._replace(commit_log=database.commit_log, next_xid=database.next_xid)
    return learned


def _seen(scene: AtDatabase, ids: Ids, asked: actions.Recover) -> tuple[str, ...]:
    stored = scene.database.row and scene.database.row.cursor
    after_fast = stored and asked.cursor.batch_no > stored.batch_no + 1
    orphan = not all(map(scene.database.has_half, ids))
    return (*((FAST_THEN_HISTORY,) if after_fast else ()), *((ORPHAN,) if orphan else ()))


def save_progress(scene: AtDatabase, asked: actions.SaveProgress) -> Iterator[Outcome]:
    """Move the cursor, unless somebody else has moved it further."""
    saved = save(scene.database, asked.cursor, begins=asked.begins)
    if saved is None:
        yield Outcome("SaveProgress: overtaken", answers.Failed(Failure.OVERTAKEN))
    else:
        yield Outcome(f"SaveProgress: {cursor_text(asked.cursor)}", None, database=saved)


def halt(scene: AtDatabase, asked: actions.StoreHalt) -> Iterator[Outcome]:
    """Store the reason."""
    halted = store_halt(scene.database, asked.reason)
    yield Outcome(f"StoreHalt {asked.reason}", None, database=halted)


def hold_messages(scene: AtDatabase, asked: actions.HoldRecords) -> Iterator[Outcome]:
    """Store rows for messages that are refused, or wait; only the generation's owner may."""
    database, batch = scene.database, asked.batch
    if scene.rules.own_to_hold and not owns(database, batch.gen):
        yield Outcome("Hold: overtaken", answers.Failed(Failure.OVERTAKEN))
        return
    ids = numbers(asked.message_ids)
    rows = [
        Held(at, i, asked.refusal is not None)
        for at, i in positions(database, batch.after)
        if i in ids and at <= batch.to
    ]
    text = f"Hold: {named(ids)}, {'refused' if asked.refusal else 'waiting'}"
    yield Outcome(text, None, database=hold(database, rows), reached=(K_ENTRY,))


def read_held(scene: AtDatabase, asked: actions.ReadHeld) -> Iterator[Outcome]:
    """Answer with the first open rows at or below the position; a refused one comes alone."""
    database = scene.database
    rows = [row for row in open_held(database) if row.at <= asked.position]
    most = scene.batch_max if asked.most is None else min(asked.most, scene.batch_max)
    run = list(takewhile(lambda row: not row.refused, rows)) or rows[:1]
    ids = tuple(row.message for row in run[:most])
    known = database.already_published if scene.rules.skip_published else frozenset[int]()
    before = frozenset(message_id(i) for i in ids if i in known)
    answer = answers.Commits(
        asked.position, tuple(map(message_id, ids)), before=before, kind=Kind.RELEASE
    )
    yield Outcome(f"ReadHeld: {named(ids)}", answer)


def postpone_held(scene: AtDatabase, asked: actions.Postpone) -> Iterator[Outcome]:
    """Note the refusal."""
    (message,) = numbers((asked.message_id,))
    postponed = postpone(scene.database, message)
    yield Outcome(f"Postpone: m{message}", None, database=postponed)


def mark_rows(scene: AtDatabase, asked: actions.MarkReleased) -> Iterator[Outcome]:
    """Mark a release's rows and move the cursor, or do neither."""
    ids = numbers(tuple(entry.message_id for entry in asked.manifest.entries))
    marked = mark_released(scene.database, ids)
    saved = save(marked, asked.cursor)
    if saved is None:
        yield Outcome("MarkReleased: overtaken", answers.Failed(Failure.OVERTAKEN))
        return
    text = f"MarkReleased: {named(ids)}"
    replayed = (REPLAYED_RELEASE,) if asked.cursor.gen == asked.manifest.gen else ()
    yield Outcome(text, answers.Stored(), database=saved, reached=(RELEASE, *replayed))


def read_commits(scene: AtDatabase, asked: actions.ReadCommits) -> Iterator[Outcome]:
    """Answer with the next final commits, or that there are none; what is held may be due."""
    database, final = scene.database, scene.rules.read_below_watermark
    most = scene.batch_max if asked.most is None else min(asked.most, scene.batch_max)
    found = [
        (at, i)
        for at, i in positions(database, asked.after)
        if at.xid < database.watermark or not final
    ][:most]
    due = any(row.at <= asked.after for row in open_held(database))
    if not found:
        yield from _nothing_to_do(asked, due=due)
        return
    yield _commits_read(scene, found, due=due)
    if due:
        yield _commits_read(scene, found, due=False)


def _commits_read(
    scene: AtDatabase, found: Sequence[tuple[Position, int]], *, due: bool
) -> Outcome:
    database = scene.database
    ids = tuple(i for _, i in found)
    known = database.already_published | {row.message for row in database.held if row.released}
    waiting = open_held(database)
    held = {row.message for row in waiting}
    first = min((row.at for row in waiting), default=None)
    if first is not None and scene.rules.hold_scope:
        held.update(i for at, i in found if at > first)
    answer = answers.Commits(
        found[-1][0],
        tuple(map(message_id, ids)),
        before=frozenset(message_id(i) for i in ids if i in known),
        held=frozenset(message_id(i) for i in ids if i in held),
        due=due,
    )
    reached = (S_ENTRY,) if answer.before else ()
    text = f"ReadCommits: {named(ids)}{', and some held are due' if due else ''}"
    return Outcome(text, answer, reached=reached)


def _nothing_to_do(asked: actions.ReadCommits, *, due: bool) -> Iterator[Outcome]:
    if due:
        yield Outcome("ReadCommits: some held are due", answers.Commits(asked.after, due=True))
    for text, at in (("a second has passed", PROGRESS_SECONDS), ("nothing", 0.0)):
        yield Outcome(f"ReadCommits: {text}", answers.Commits(asked.after, at=at))
    day = answers.Commits(asked.after, at=SIGN_OF_LIFE_SECONDS)
    yield Outcome("ReadCommits: a day has passed", day, cost=Fault.SIGN)
