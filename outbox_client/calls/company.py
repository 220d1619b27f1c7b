"""The callers that were answered together a moment ago, and may come again together.

A request that went as soon as the first of them comes would carry one call, and the others would
wait for its answer.
"""

from threading import Lock
from typing import Final

PAUSE: Final = 0.2
"""Part of the last request's duration. If nobody comes for so long, nobody else is expected."""

PAUSE_MAX_SECONDS: Final = 0.005
FORGOTTEN_SECONDS: Final = 0.1
"""A caller that comes later than this after the last answer waits for nobody."""


class Company:
    """Counts the callers of one producer: those expected back, and those whose requests run.

    ``lock`` guards it and the queues of the same producer.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.pause_seconds = 0.0
        """How long a request waits for the next of them."""
        self._expected = 0
        self._under_way = 0
        self._answered_at = 0.0

    def is_expected(self, waiting: int) -> bool:
        """Return whether a request of so many calls should wait a moment for more.

        It does for callers that were answered together, and as a group for a smaller one, which
        would stay apart for ever.
        """
        return self._expected > 0 or (waiting > 1 and 0 < self._under_way <= waiting)

    def came(self, at: float) -> None:
        """Note that a caller has come."""
        forgotten = at - self._answered_at > FORGOTTEN_SECONDS
        self._expected = 0 if forgotten else max(0, self._expected - 1)

    def stayed_away(self) -> None:
        """Expect nobody any more."""
        self._expected = 0

    def sent(self, calls: int) -> None:
        """Note that a request of so many calls starts."""
        self._under_way += calls

    def answered(self, calls: int, began: float, ended: float) -> None:
        """Note the end of a request, from ``began`` to ``ended`` (seconds).

        A call that was sent alone has no company.
        """
        self._under_way -= calls
        if calls > 1:
            self._expected += calls
        self._answered_at = ended
        self.pause_seconds = min((ended - began) * PAUSE, PAUSE_MAX_SECONDS)
