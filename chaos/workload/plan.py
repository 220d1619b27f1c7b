"""The plan of a client, drawn from its seed: messages, their truth, and how they are ended.

Pure: two plans of one seed are equal, whatever the calls return.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, count
from typing import Any, Final

KEYS: Final = 200
ZIPF: Final = tuple(accumulate(1 / rank for rank in range(1, KEYS + 1)))
KEYLESS: Final = 0.03
TOPICS: Final = {"chaos.three": 3, "chaos.six": 6}
"""The topics and their partitions."""
BATCH_GROUP: Final = "chaos-batch"
SINGLE_GROUP: Final = "chaos-single"
SIZES: Final = ((0.03, 0, 0), (0.70, 1, 200), (0.20, 200, 2_000), (0.065, 2_000, 8_000))
"""Share of the values, smallest and largest size; the rest is up to 64 KiB."""
LARGEST: Final = 65_536
ROLLED_BACK: Final = 0.15
SEVERAL: Final = 0.2
"""The share of decisions over two to five messages."""
BATCH_SIZES: Final = (30, 130)
CHAIN_LENGTHS: Final = (3, 6)
REFUSED_EVERY: Final = 20
"""Every twentieth unit, and the first one, is a prepare that the API must refuse."""
RESERVED_HEADER: Final = ("outbox_reserved", "x")
ANY_HEADERS: Final = (("schema", {"base64": "Af//"}), ("none", None))
"""A value of bytes and a null."""
_FILLER: Final = "".join(
    random.Random("filler").choices('abcdefghijklmnopqrstuvwxyz ä"\\', k=LARGEST)
)


class Ending(StrEnum):
    """How the producer ends a transaction, if at all."""

    ONCE = "once"
    NEVER = "never"
    TWICE = "twice"
    CONTRADICTED = "contradicted"
    UNKNOWN = "unknown"


ENDINGS: Final = (
    (Ending.NEVER, 0.10),
    (Ending.TWICE, 0.05),
    (Ending.CONTRADICTED, 0.02),
    (Ending.UNKNOWN, 0.01),
)


class Form(StrEnum):
    """How a unit of work calls the API."""

    BATCH = "batch"
    SINGLE = "single"
    CHAIN = "chain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One transaction as its producer plans it."""

    tx: str
    topic: str
    key: str | None
    value: str
    headers: tuple[tuple[str, Any], ...]
    decision: str
    ending: Ending
    replayed: bool
    """prepared again with the same transaction id"""
    followers: tuple[Planned, ...] = ()
    """the other messages under its decision"""

    @property
    def sha(self) -> str:
        """SHA-256 of the value."""
        return hashlib.sha256(self.value.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The transactions of one unit of work."""

    form: Form
    group: str
    items: tuple[Planned, ...]


def units(seed: int, client: str) -> Iterator[Unit]:
    """Yield a client's endless work."""
    chance, numbers = random.Random(f"{seed}/{client}"), count(1)
    for place in count():
        if place % REFUSED_EVERY == 0:
            yield _refused(f"{client}-{next(numbers)}")
        form = chance.choices((Form.BATCH, Form.SINGLE, Form.CHAIN), (0.55, 0.35, 0.10))[0]
        group = BATCH_GROUP if chance.random() < 0.9 else SINGLE_GROUP
        length = _length(form, chance)
        topic, key = chance.choice(tuple(TOPICS)), _key(chance)
        items = tuple(
            _decision(
                f"{client}-{next(numbers)}", chance, (topic, key) if form is Form.CHAIN else None
            )
            for _ in range(length)
        )
        yield Unit(form=form, group=group, items=items)


def _refused(tx: str) -> Unit:
    """Return the prepare of a message with a header name that is reserved."""
    item = Planned(
        tx=tx,
        topic=next(iter(TOPICS)),
        key=None,
        value=tx,
        headers=(RESERVED_HEADER,),
        decision="COMMIT",
        ending=Ending.NEVER,
        replayed=False,
    )
    return Unit(form=Form.SINGLE, group=BATCH_GROUP, items=(item,))


def _length(form: Form, chance: random.Random) -> int:
    match form:
        case Form.BATCH:
            return chance.randint(*BATCH_SIZES)
        case Form.CHAIN:
            return chance.randint(*CHAIN_LENGTHS)
        case Form.SINGLE:
            return 1


def _decision(tx: str, chance: random.Random, scope: tuple[str, str | None] | None) -> Planned:
    """Return a message, in one of five decisions with one to four followers."""
    leader = _planned(tx, chance, scope)
    if chance.random() >= SEVERAL:
        return leader
    followers = [_planned(tx, chance, None) for _ in range(chance.randint(1, 4))]
    return replace(leader, followers=tuple(followers))


def _planned(tx: str, chance: random.Random, scope: tuple[str, str | None] | None) -> Planned:
    topic, key = scope or (chance.choice(tuple(TOPICS)), _key(chance))
    return Planned(
        tx=tx,
        topic=topic,
        key=key,
        value=_value(tx, chance),
        headers=(("origin", tx), *ANY_HEADERS) if chance.random() < 0.2 else (),
        decision="ROLLBACK" if chance.random() < ROLLED_BACK else "COMMIT",
        ending=_ending(chance),
        replayed=chance.random() < 0.03,
    )


def _key(chance: random.Random) -> str | None:
    if chance.random() < KEYLESS:
        return None
    return f"key-{chance.choices(range(KEYS), cum_weights=ZIPF)[0]}"


def _value(tx: str, chance: random.Random) -> str:
    size = _size(chance)
    return (f"{tx} {_FILLER}")[:size]


def _size(chance: random.Random) -> int:
    share = chance.random()
    for of_all, low, high in SIZES:
        if share < of_all:
            return chance.randint(low, high)
        share -= of_all
    return chance.randint(8_000, LARGEST // 2)


def _ending(chance: random.Random) -> Ending:
    share = chance.random()
    for ending, of_all in ENDINGS:
        if share < of_all:
            return ending
        share -= of_all
    return Ending.ONCE
