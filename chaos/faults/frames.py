"""Single frames that come late, twice, out of order or without an answer (reliability F5)."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from chaos.faults.links import proxied_link
from chaos.faults.nemesis import Facts
from chaos.proxies.rules import Action, Rule

if TYPE_CHECKING:
    from chaos.proxies.proxy_client import RemoteLink
    from chaos.run_context import ChaosContext
    from chaos.schedule import Fault

STRIKE_SECONDS: Final = 5.0
"""A rule that has met no frame for so long is disarmed."""
LATE_SECONDS: Final = 12.0
"""How much longer than wanted a stale copy may be on its way."""
LOOK_SECONDS: Final = 0.25

FRAME_ACTIONS: Final[Mapping[str, Action]] = {
    "frame_hold": Action.HOLD,
    "frame_repeat": Action.REPEAT,
    "frame_reorder": Action.HOLD,
    "frame_stall": Action.STALL,
    "frame_drop_answer": Action.DROP_ANSWER,
}
PACKET_ACTIONS: Final[Mapping[str, Action]] = {
    "packet_stall": Action.STALL,
    "packet_cut": Action.CUT_MIDDLE,
    "packet_drop_answer": Action.DROP_ANSWER,
}


ENDS: Final[Mapping[str, bool]] = {"commit": True, "abort": False}
"""Which EndTxn alone are meant."""


class KafkaFrames:
    """Breaks one request of Kafka's protocol: ``frame`` names it, ``nth`` counts."""

    kinds = frozenset(FRAME_ACTIONS)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Arm a rule and wait until it has struck and its copy, if any, has arrived."""
        link, action = proxied_link(world, fault), FRAME_ACTIONS[fault.kind]
        rule = Rule(
            name=str(fault.arg("frame", "EndTxn")),
            action=action,
            nth=int(fault.arg("nth", 1)),
            commits=ENDS.get(str(fault.arg("ends", ""))),
            seconds=fault.seconds,
            frames=int(fault.arg("overtaken_by", 20)) if fault.kind == "frame_reorder" else None,
        )
        number = link.arm(rule)
        patience = STRIKE_SECONDS
        copies = action in (Action.HOLD, Action.REPEAT)
        events = _events(world, link, number, patience, fault.seconds if copies else None)
        link.disarm(number)
        return _facts(rule, events)

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the links heal their rules."""


class PostgresPackets:
    """Breaks one packet of a session: ``packet`` names it, a COMMIT if nothing else is said."""

    kinds = frozenset(PACKET_ACTIONS)

    def inject(self, world: ChaosContext, fault: Fault) -> Facts:
        """Arm a rule and wait until it has struck."""
        link = proxied_link(world, fault)
        rule = Rule(
            name=str(fault.arg("packet", "COMMIT")),
            action=PACKET_ACTIONS[fault.kind],
            nth=int(fault.arg("nth", 1)),
            seconds=fault.seconds,
        )
        number, deadline = link.arm(rule), monotonic() + STRIKE_SECONDS
        while link.armed(number) and monotonic() < deadline and not world.stop.is_set():
            world.stop.wait(LOOK_SECONDS)
        return {"packet": rule.name, "nth": rule.nth, "struck": not link.disarm(number)}

    def heal(self, world: ChaosContext) -> None:
        """Nothing is left: the links heal their rules."""


def _events(
    world: ChaosContext, link: RemoteLink, rule: int, patience: float, held_seconds: float | None
) -> list[dict[str, Any]]:
    """Return what a rule did, complete with the arrival of the copy if one was held."""
    events, deadline = link.events(rule), monotonic() + patience
    while not events and monotonic() < deadline and not world.stop.is_set():
        world.stop.wait(LOOK_SECONDS)
        events += link.events(rule)
    if not events or held_seconds is None:
        return events
    deadline = monotonic() + held_seconds + LATE_SECONDS
    while len(events) < 2 and monotonic() < deadline and not world.stop.is_set():
        world.stop.wait(LOOK_SECONDS)
        events += link.events(rule)
    return events


def _facts(rule: Rule, events: list[dict[str, Any]]) -> Facts:
    facts: Facts = {"frame": rule.name, "nth": rule.nth, "struck": bool(events)}
    for event in events:
        facts.update({key: event[key] for key in ("owner", "commits") if event[key] is not None})
        if event["what"] == "stale":
            facts.update({key: event[key] for key in ("late", "error", "failed") if key in event})
    return facts
