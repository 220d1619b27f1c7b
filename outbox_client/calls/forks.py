"""What is made again in a child of the process.

A child has the sockets of its parent, so both would read each other's answers. It has none of the
other threads, so what they had begun would never end.
"""

import os
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

Opened = TypeVar("Opened")

_renewals: WeakKeyDictionary[object, Callable[..., None]] = WeakKeyDictionary()


def renew_in_children(opened: Opened, renew: Callable[[Opened], None]) -> None:
    """Call ``renew(opened)`` in every child of this process, for as long as ``opened`` is used."""
    _renewals[opened] = renew


def _renew_all() -> None:
    for opened, renew in list(_renewals.items()):
        renew(opened)


if hasattr(os, "register_at_fork"):  # where processes can fork at all
    os.register_at_fork(after_in_child=_renew_all)
