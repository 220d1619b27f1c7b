"""The scene of a relay's action: the store, the rules, and the possible outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from outbox.relay.protocol.state import Cursor
from tests.model.relays import ModelAnswer
from tests.model.stores.kafka import Broker
from tests.model.stores.postgres import Database

INSTALLATION: Final = UUID(int=1)
LONG_REPLAY: Final = "a REPLAY of more than one manifest"
FAST_THEN_HISTORY: Final = "FAST, then HISTORY"
ORPHAN: Final = "an orphan"
S_ENTRY: Final = "an S entry"
K_ENTRY: Final = "a K entry"
RELEASE: Final = "a release batch"
REPLAYED_RELEASE: Final = "a release that REPLAY marks"
UNSENT: Final = "a manifest in Kafka without all of its records"
LEFT: Final = "a transactional id that is left"
STALE_FRAME: Final = "a stale frame meets an open transaction"


class Fault(IntEnum):
    """A kind of fault; a configuration limits the number of each."""

    CRASH = 0
    """A relay dies, or gets an error or no answer for its action at Kafka."""
    FRAME = 1
    """A commit is not clean: a copy of its EndTxn is still in the network."""
    TAKEOVER = 2
    """A relay fences another one that is alive."""
    FAILOVER = 3
    """The WAL's tail is lost."""
    ABORT = 4
    """A flush aborts, and its xid is never used."""
    SIGN = 5
    """A day passes without work."""
    ROLLBACK = 6
    """A message is decided as ROLLBACK."""
    REFUSE = 7
    """Kafka refuses a batch permanently."""
    STUCK = 8
    """Kafka does not end a transaction in time: a relay's fence fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules of the world that a mutant breaks."""

    read_below_watermark: bool = True
    compare_below_watermark: bool = True
    note_published: bool = True
    commit_recovered: bool = True
    hold_scope: bool = True
    """A message of a held scope is listed as held itself."""
    mark_in_history: bool = True
    """HISTORY marks the held rows of the ids that Kafka has."""
    skip_published: bool = True
    """A release does not publish messages that Kafka already has."""
    own_to_hold: bool = True
    """Only the owner of the stored generation may hold a message."""
    prove_the_handle: bool = True
    """A record is refused unsent only on a handle that Kafka has just accepted."""
    void_with_session: bool = True
    """A relay loses its state with the session that a lost tail ends."""
    fence_moves_epoch: bool = True
    fence_next_id: bool = True
    """A fence is one of the next transactional id too."""


RULES: Final = Rules()
"""All of them."""


class Outcome(NamedTuple):
    """A possible outcome of an action."""

    text: str
    answer: ModelAnswer
    database: Database | None = None
    """PostgreSQL afterwards; None: as before."""
    broker: Broker | None = None
    """Kafka afterwards; None: as before."""
    cost: Fault | None = None
    owns: bool | None = None
    """Whether the relay has the handle of the current epoch now; None: as before."""
    reached: tuple[str, ...] = ()
    """Names of states that a search must reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtDatabase:
    """The scene of a relay's action on PostgreSQL."""

    database: Database
    rules: Rules
    batch_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AtBroker:
    """The scene of a relay's action on Kafka."""

    broker: Broker
    number: int
    """Of the transactional id that the relay uses."""
    owner: bool
    """It has the handle of this id's current epoch."""
    rules: Rules


def message_id(message: int) -> bytes:
    """Return the 16 bytes of a message in manifests."""
    return message.to_bytes(16)


def numbers(message_ids: tuple[bytes, ...]) -> tuple[int, ...]:
    """Return the messages of these bytes."""
    return tuple(int.from_bytes(given) for given in message_ids)


def named(messages: tuple[int, ...]) -> str:
    """Return the names of messages for people."""
    return " ".join(f"m{message}" for message in messages) or "nothing"


def cursor_text(cursor: Cursor) -> str:
    """Return a short text of a cursor."""
    (xid, n), offset, batch_no, _, gen = cursor
    return f"position ({xid},{n}), offset {offset}, batch {batch_no}, gen {gen}"
