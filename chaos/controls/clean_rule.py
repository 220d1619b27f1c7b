"""Control: checkers without the CLEAN rule while EndTxn requests are held.

The trusting one reuses a handle whose commit may have been sent twice: a stale commit makes half a
batch visible, which is then published again. The aborting one aborts a failed batch and reuses the
handle: a stale abort removes a batch that its manifest lists as published.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from chaos.controls.broken_relays import AbortingPublisher, TrustingRelay
from chaos.profiles.fault_mixes import Mix, Range
from chaos.profiles.profile import Profile
from checker import relay_wiring
from checker.__main__ import main as run_checker
from outbox.messages.record import Record
from outbox.relay.ports import DeliveryReport

NAME: Final = "CLEAN rule off, EndTxn held"
SECONDS: Final = 40.0
HOLDS_PER_MINUTE: Final = 90.0
GIVEN_UP: Final = 0.1
"""The share of batches that the aborting checker aborts."""


class OftenUnlucky(AbortingPublisher):
    """Aborts a share of all batches."""

    def publish(
        self, records: Sequence[Record], manifest: bytes, at_ms: int = 0, *, apart: bool = False
    ) -> DeliveryReport:
        """Publish, and sometimes report a failure."""
        self.unlucky = random.random() < GIVEN_UP
        return super().publish(records, manifest, at_ms, apart=apart)


def trusting_checker() -> int:
    """Run a checker whose relays take every commit for clean."""
    return _run_with("ShardRelay", TrustingRelay)


def aborting_checker() -> int:
    """Run a checker whose relays abort and reuse the same handle."""
    return _run_with("KafkaPublisher", OftenUnlucky)


def _run_with(name: str, broken: type[object]) -> int:
    """Run a checker whose relays have one broken part."""
    if not issubclass(broken, getattr(relay_wiring, name)):
        raise LookupError(f"the relay does not use {name}: this control would test nothing")
    setattr(relay_wiring, name, broken)
    return run_checker([])


def profile_of(program: str, ends: str, failpoint: str, held: Range) -> Profile:
    """Return a profile of such a checker with slow batches and one kind of EndTxn held.

    The relay looks what became of its last batches before it goes on after an abort, so an abort
    must be late for longer to meet the next batch.
    """
    return Profile(
        name=f"control-{program.replace('_', '-')}",
        seconds=SECONDS,
        proxies=True,
        checkers=1,
        apis=1,
        messages_per_second=300.0,
        programs={"checker": f"{__name__}:{program}"},
        settings={"OUTBOX_FAILPOINTS": failpoint},
        mixes=(
            Mix(
                kind="frame_hold",
                targets=("kafka",),
                per_minute=HOLDS_PER_MINUTE,
                seconds=held,
                args=(("frame", "EndTxn"), ("ends", ends)),
            ),
        ),
    )


TRUSTING: Final = profile_of(
    "trusting_checker", "commit", "relay.after_first_produce=sleep:300@0.5", (1.3, 2.5)
)
ABORTING: Final = profile_of(
    "aborting_checker", "abort", "relay.after_data_flush=sleep:300@0.5", (2.0, 7.0)
)
MUST_SHOW: Final = ((TRUSTING, frozenset({"I1", "I8"})), (ABORTING, frozenset({"I3", "I8"})))
