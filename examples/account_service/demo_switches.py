"""Ways to fail that the demo can switch on. No real service has this module.

The caller asks for one by the header ``X-Demo-Fail``; it is ignored unless the process was
started with ``--demo-switches``.
"""

import os
from enum import StrEnum

HEADER = "X-Demo-Fail"
EXIT_CODE = 86


class DemoSwitch(StrEnum):
    """What is to go wrong, right after the local transaction committed."""

    DIE_AFTER_COMMIT = "die-after-commit"
    LOSE_THE_END = "lose-the-end"


class EndLost(Exception):
    """The demo asked that the end of this message be never sent."""


def switch_of(header: str | None, *, enabled: bool) -> DemoSwitch | None:
    """Return the switch that the caller asked for, if this process has any."""
    known = enabled and header in tuple(DemoSwitch)
    return DemoSwitch(header) if known and header else None


def fail_after_commit(switch: DemoSwitch | None) -> None:
    """Die on the spot, or raise ``EndLost``, as asked."""
    if switch is DemoSwitch.DIE_AFTER_COMMIT:
        os._exit(EXIT_CODE)
    if switch is DemoSwitch.LOSE_THE_END:
        raise EndLost
