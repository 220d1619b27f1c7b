"""Protocols with one wrong rule each: a search that accepts one proves nothing.

A mutant is a wrapper of the relay's own ``step`` or a rule of the world taken away, with a world so
small that the rule just matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outbox.messages.manifest import Kind, crc_of, encode
from outbox.relay.protocol.actions import (
    Commit,
    Fence,
    MarkReleased,
    Recover,
    SaveProgress,
)
from outbox.relay.protocol.answers import (
    Answer,
    Bounds,
    CommitEnded,
    Compared,
    DeliveryReport,
    Fenced,
    ManifestsRead,
    Stored,
)
from outbox.relay.protocol.state import Phase, Relay, require
from outbox.relay.protocol.step import step
from outbox.relay.protocol.takeover import FENCE_SECONDS
from outbox.relay.protocol.transition import Next
from tests.fixtures_replacing import replace
from tests.model.configurations import LARGER, SEARCHED, Configuration
from tests.model.relays import Step
from tests.model.scene import RULES, Fault, Rules


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong protocol, the world that shows the defect, and the invariant that it must break."""

    name: str
    configuration: Configuration
    breaks: str
    step: Step = step
    rules: Rules = RULES


def mark_before_commit(state: Relay, answer: Answer) -> Next:
    """Store the cursor before Kafka has committed the batch."""
    after, plan = step(state, answer)
    if plan == (Commit(),):
        return after, (SaveProgress(require(after.candidate)), Commit())
    return after, plan


def replay_before_fence(state: Relay, answer: Answer) -> Next:
    """Read the manifests first and fence second."""
    after, plan = step(state, answer)
    if isinstance(plan[0], Fence):
        return step(after, Fenced())
    if state.phase is Phase.REPLAY and after.phase is Phase.RUN:
        return after, (Fence(after.number, FENCE_SECONDS), *plan)
    return after, plan


def last_manifest_only(state: Relay, answer: Answer) -> Next:
    """Compare only the newest manifest."""
    if not isinstance(answer, ManifestsRead) or not answer.found:
        return step(state, answer)
    last = answer.found[-1]
    manifest = require(last.manifest)
    cursor = state.at._replace(batch_no=manifest.batch_no - 1, crc=manifest.prev_crc)
    return step(replace(state, cursor=cursor), ManifestsRead((last,), answer.reached))


def no_clean_rule(state: Relay, answer: Answer) -> Next:
    """Keep a handle whose last commit may have been sent twice."""
    if isinstance(answer, CommitEnded):
        return step(state, replace(answer, seconds=0.0))
    return step(state, answer)


def timeline_instead_of_comparison(state: Relay, answer: Answer) -> Next:
    """Compare only after a change of timeline: a restored file copy loses a tail without one."""
    if isinstance(answer, Compared):
        manifest = require(state.found[0].manifest)
        state = replace(state, cursor=state.at._replace(position=manifest.after))
        ids = tuple(entry.message_id for entry in manifest.entries)
        answer = Compared(ids, True, frozenset(ids))
    return step(state, answer)


def history_moves_the_position(state: Relay, answer: Answer) -> Next:
    """Move the position in HISTORY past a range that PostgreSQL has filled again since then."""
    after, plan = step(state, answer)
    if len(plan) == 1 and isinstance(plan[0], Recover):
        position = max(after.at.position, plan[0].manifest.to)
        moved = after.at._replace(position=position)
        return replace(after, cursor=moved), (replace(plan[0], cursor=moved),)
    return after, plan


def mark_before_the_release(state: Relay, answer: Answer) -> Next:
    """Mark a release's rows, and free its scope, before Kafka has committed it."""
    after, plan = step(state, answer)
    batch = after.batch
    if plan == (Commit(),) and batch is not None and batch.kind is Kind.RELEASE:
        return after, (MarkReleased(batch, require(state.cursor)), Commit())
    return after, plan


def cursor_before_the_mark(state: Relay, answer: Answer) -> Next:
    """Move the cursor past a release in one transaction and mark its rows in the next."""
    after, plan = step(state, answer)
    if isinstance(plan[0], MarkReleased):
        return after, (SaveProgress(plan[0].cursor), *plan)
    return after, plan


def replay_marks_nothing(state: Relay, answer: Answer) -> Next:
    """Pass a release in REPLAY without marking its rows."""
    after, plan = step(state, answer)
    while isinstance(plan[0], MarkReleased) and after.phase is Phase.REPLAY:
        after, plan = step(after, Stored())
    return after, plan


def generation_of_two(state: Relay, answer: Answer) -> Next:
    """Start a generation that another relay may have started too."""
    after, plan = step(state, answer)
    shared = (replace(a, begins=False) if isinstance(a, SaveProgress) else a for a in plan)
    return after, tuple(shared)


def bounds_without_the_number(state: Relay, answer: Answer) -> Next:
    """Go on with a transactional id that the shard has left meanwhile."""
    if not isinstance(answer, Bounds):
        return step(state, answer)
    after, plan = step(replace(state, number=1), answer)
    return replace(after, number=state.number), plan


def commit_in_spite_of_a_report(state: Relay, answer: Answer) -> Next:
    """Commit a transaction though a record was not acknowledged."""
    if isinstance(answer, DeliveryReport) and answer.refused is None and answer.offset < 0:
        batch, offset = require(state.batch), state.at.manifest_offset
        answer = DeliveryReport(len(batch.published), offset=offset, crc=crc_of(encode(batch)))
    return step(state, answer)


_CUT = Configuration(name="tail lost, crash", faults={Fault.FAILOVER: 1, Fault.CRASH: 1})
_ANEW = LARGER[1]
_LATE = Configuration(name="late frame, crash", faults={Fault.FRAME: 1, Fault.CRASH: 1})
_RIVALS = Configuration(name="takeover", relays=2, messages=1, faults={Fault.TAKEOVER: 1})
_ONE = Configuration(name="crash", messages=1, faults={Fault.CRASH: 1})
_CALM = Configuration(name="no fault")
_REFUSED = Configuration(
    name="refusals, crash, one a batch",
    faults={Fault.REFUSE: 2, Fault.CRASH: 1},
    batch_max=1,
    open_flushes=1,
)
_REFUSED_TAIL, _REFUSED_TWICE = SEARCHED[-1], LARGER[-1]
_STUCK, _STUCK_TAIL = SEARCHED[-4], LARGER[0]
MUTANTS: Final = (
    Mutant("mark before commit", _ONE, "I3", mark_before_commit),
    Mutant("replay before fence", _RIVALS, "I1", replay_before_fence),
    Mutant("last manifest only", _CUT, "I1", last_manifest_only),
    Mutant("no CLEAN rule", _LATE, "I1", no_clean_rule),
    Mutant("timeline instead of comparison", _CUT, "I3", timeline_instead_of_comparison),
    Mutant("HISTORY that moves the position", _CUT, "I3", history_moves_the_position),
    Mutant("HISTORY without already_published", _CUT, "I1", rules=Rules(note_published=False)),
    Mutant("HISTORY without its COMMIT", _CUT, "I2", rules=Rules(commit_recovered=False)),
    Mutant(
        "comparison without the watermark", _ANEW, "I3", rules=Rules(compare_below_watermark=False)
    ),
    Mutant(
        "no watermark",
        _CALM,
        "I3",
        rules=Rules(read_below_watermark=False),
    ),
    Mutant("a lost session's knowledge kept", _CUT, "I3", rules=Rules(void_with_session=False)),
    Mutant("a held scope's later message not held", _REFUSED, "I6", rules=Rules(hold_scope=False)),
    Mutant("rows marked before the release commits", _REFUSED, "I3", mark_before_the_release),
    Mutant("the cursor moved before the mark", _REFUSED, "I1", cursor_before_the_mark),
    Mutant("REPLAY that marks no rows", _REFUSED, "I1", replay_marks_nothing),
    Mutant(
        "HISTORY that marks no rows, a release that does not look",
        _REFUSED_TAIL,
        "I1",
        rules=Rules(mark_in_history=False, skip_published=False),
    ),
    Mutant("a fenced relay may hold", _REFUSED_TWICE, "I1", rules=Rules(own_to_hold=False)),
    Mutant(
        "a fenced relay may refuse unsent",
        _REFUSED_TWICE,
        "I1",
        rules=Rules(prove_the_handle=False),
    ),
    Mutant("a generation of two owners", _REFUSED_TWICE, "I1", generation_of_two),
    Mutant("an id used that was left", _STUCK, "I1", bounds_without_the_number),
    Mutant(
        "a fence without that of the next id",
        _STUCK_TAIL,
        "I2",
        rules=Rules(fence_next_id=False),
    ),
    Mutant("a missing report ignored", _ONE, "I8", commit_in_spite_of_a_report),
    Mutant("a fence that keeps the epoch", _LATE, "I1", rules=Rules(fence_moves_epoch=False)),
)
"""Each must fail with real damage: a message lost, doubled, or published undecided."""

WORLDS: Final = (
    _CUT,
    _LATE,
    _RIVALS,
    _ONE,
    _CALM,
    _REFUSED,
)
"""The mutants' own worlds: the relay's protocol must hold in each of them."""
