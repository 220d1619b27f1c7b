"""Failures that the demo can switch on. No real service has this module.

The header ``X-Demo-Fail`` requests one; it is ignored unless the process was started with
``--demo-switches``.
"""

import os
from enum import StrEnum

HEADER = "X-Demo-Fail"
EXIT_CODE = 86


class DemoSwitch(StrEnum):
    """The failure to cause, right after the local transaction committed."""

    DIE_AFTER_COMMIT = "die-after-commit"
    LOSE_THE_END = "lose-the-end"


class EndLost(Exception):
    """The demo requested that the end of this message is never sent."""


def read_switch(header: str | None, *, enabled: bool) -> DemoSwitch | None:
    """Return the requested switch, if this process accepts switches."""
    known = enabled and header in tuple(DemoSwitch)
    return DemoSwitch(header) if known and header else None


def fail_after_commit(switch: DemoSwitch | None) -> None:
    """Exit at once, or raise ``EndLost``, as the switch requests."""
    if switch is DemoSwitch.DIE_AFTER_COMMIT:
        os._exit(EXIT_CODE)
    if switch is DemoSwitch.LOSE_THE_END:
        raise EndLost
