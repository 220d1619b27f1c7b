"""Named points at which a test makes this process die, wait, fail or skip a step.

``OUTBOX_FAILPOINTS="relay.after_manifest=kill@0.01,api.end.after_commit=sleep:200#3"``: the action
after ``=`` happens with the probability after ``@``, or at the n-th passage after ``#``, otherwise
always. Without the setting, a point costs one lookup in an empty dictionary.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from dataclasses import dataclass
from typing import Final

from outbox.errors import ConfigurationError, OutboxError

POINTS: Final = frozenset(
    {
        "api.prepare.before_commit",
        "api.prepare.after_commit",
        "api.end.before_commit",
        "api.end.after_commit",
        "relay.lock",
        "relay.after_lock",
        "relay.after_verify",
        "relay.after_fence",
        "relay.after_watermark",
        "relay.after_replay",
        "relay.after_history_chunk",
        "relay.after_select",
        "relay.after_hold",
        "relay.after_held_select",
        "relay.after_postpone",
        "relay.after_release_mark",
        "relay.after_begin",
        "relay.after_first_produce",
        "relay.after_data_flush",
        "relay.after_manifest",
        "relay.before_commit",
        "relay.after_commit",
        "relay.after_cursor",
        "checker.after_slice",
        "checker.after_call",
        "checker.before_commit",
        "checker.after_commit",
        "sweep.before_commit",
        "sweep.after_commit",
        "plain.after_take",
        "plain.before_commit",
        "plain.after_commit",
        "retire.before_detach",
        "retire.after_detach",
        "retire.after_drop",
        "leaves.after_create",
    }
)
"""Every point in the code; a test compares this list with the calls."""

_FORM: Final = re.compile(
    r"(?P<name>[a-z_.]+)=(?P<action>kill|sleep|raise|skip)(?::(?P<millis>\d+))?"
    r"(?:@(?P<chance>[0-9.]+)|#(?P<nth>\d+))?"
)


class FailpointRaised(OutboxError):
    """A failpoint made this step fail."""


@dataclass(slots=True)
class _Armed:
    action: str
    seconds: float
    chance: float
    nth: int | None
    passages: int = 0

    def due(self) -> bool:
        self.passages += 1
        if self.nth is not None:
            return self.passages == self.nth
        return random.random() < self.chance


_armed: dict[str, _Armed] = {}


def arm(text: str | None) -> None:
    """Read the setting; raises ConfigurationError for an unknown point or form."""
    _armed.clear()
    for part in (text or "").split(","):
        if part.strip():
            name, point = _parse(part.strip())
            _armed[name] = point


def armed(name: str) -> bool:
    """Return whether a point is set, for a step that only a test splits in two."""
    return name in _armed


def hit(name: str) -> bool:
    """Pass a point; True means that the step after it must be skipped."""
    point = _armed.get(name) if _armed else None
    if point is None or not point.due():
        return False
    match point.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            threading.Event().wait(point.seconds)
        case "raise":
            raise FailpointRaised(name)
        case "skip":
            return True
    return False


def _parse(part: str) -> tuple[str, _Armed]:
    form = _FORM.fullmatch(part)
    if form is None:
        raise ConfigurationError(f"OUTBOX_FAILPOINTS: cannot read {part!r}")
    if form["name"] not in POINTS:
        raise ConfigurationError(f"OUTBOX_FAILPOINTS: no such point {form['name']!r}")
    point = _Armed(
        action=form["action"],
        seconds=int(form["millis"] or 1000) / 1000,
        chance=float(form["chance"] or 1),
        nth=int(form["nth"]) if form["nth"] else None,
    )
    return form["name"], point
