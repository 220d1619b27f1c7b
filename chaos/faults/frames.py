"""Single frames that come late, twice, out of order or without an answer (reliability F5)."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from chaos.faults.links import proxied_link
from chaos.faults.nemesis import Facts
from chaos.proxies.rules import Action, Rule

if TYPE_CHECKING:
    from chaos.faults.run_context import ChaosContext
    from chaos.profiles.schedule import Fault
    from chaos.proxies.proxy_client import RemoteLink

STRIKE_SECONDS: Final = 5.0
"""A rule that has matched no frame for so long is disarmed."""
LATE_SECONDS: Final = 12.0
"""The additional time in which a stale copy may arrive."""
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
"""Restricts a rule to one kind of EndTxn."""


class KafkaFrames:
    """Breaks one request of Kafka's protocol: ``frame`` names it, ``nth`` counts."""

    kinds = frozenset(FRAME_ACTIONS)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Arm a rule; wait until it has matched and its copy, if any, has arrived."""
        link, action = proxied_link(context, fault), FRAME_ACTIONS[fault.kind]
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
        events = _events(context, link, number, patience, fault.seconds if copies else None)
        link.disarm(number)
        return _facts(rule, events)

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: healing a link disarms its rules."""


class PostgresPackets:
    """Breaks one packet of a session: ``packet`` names it, by default a COMMIT."""

    kinds = frozenset(PACKET_ACTIONS)

    def inject(self, context: ChaosContext, fault: Fault) -> Facts:
        """Arm a rule and wait until it has matched."""
        link = proxied_link(context, fault)
        rule = Rule(
            name=str(fault.arg("packet", "COMMIT")),
            action=PACKET_ACTIONS[fault.kind],
            nth=int(fault.arg("nth", 1)),
            seconds=fault.seconds,
        )
        number, deadline = link.arm(rule), monotonic() + STRIKE_SECONDS
        while link.armed(number) and monotonic() < deadline and not context.stop.is_set():
            context.stop.wait(LOOK_SECONDS)
        return {"packet": rule.name, "nth": rule.nth, "met": not link.disarm(number)}

    def heal(self, context: ChaosContext) -> None:
        """Do nothing: healing a link disarms its rules."""


def _events(
    context: ChaosContext, link: RemoteLink, rule: int, patience: float, held_seconds: float | None
) -> list[dict[str, Any]]:
    """Return the events of a rule, including the arrival of a held copy."""
    events, deadline = link.events(rule), monotonic() + patience
    while not events and monotonic() < deadline and not context.stop.is_set():
        context.stop.wait(LOOK_SECONDS)
        events += link.events(rule)
    if not events or held_seconds is None:
        return events
    deadline = monotonic() + held_seconds + LATE_SECONDS
    while len(events) < 2 and monotonic() < deadline and not context.stop.is_set():
        context.stop.wait(LOOK_SECONDS)
        events += link.events(rule)
    return events


def _facts(rule: Rule, events: list[dict[str, Any]]) -> Facts:
    facts: Facts = {"frame": rule.name, "nth": rule.nth, "met": bool(events)}
    for event in events:
        facts.update({key: event[key] for key in ("owner", "commits") if event[key] is not None})
        if event["what"] == "stale":
            facts.update({key: event[key] for key in ("late", "error", "failed") if key in event})
    return facts
