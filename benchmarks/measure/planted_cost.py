"""A checkout in which each prepared message costs more, to see that the gate fails."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MODULE: Final = Path("outbox/messages/record.py")
"""Its ``digest_of`` runs once for each prepared message, in the API."""

_CODE: Final = '''

_digest_of_before = digest_of


def digest_of(*arguments, **named):
    """Use CPU time, then do what is asked."""
    from time import thread_time

    until = thread_time() + {seconds}
    while thread_time() < until:
        pass
    return _digest_of_before(*arguments, **named)
'''


def plant(tree: Path, micros: float) -> None:
    """Let each prepared message of a checkout cost so many CPU microseconds more."""
    with (tree / MODULE).open("a", encoding="utf-8") as module:
        module.write(_CODE.format(seconds=micros / 1e6))
