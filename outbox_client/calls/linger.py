"""Whether a request lingers a moment for more calls, as Kafka's producer does with `linger.ms`.

Callers that were answered together come again together. A request that went with the first of them
would carry one call, and the others would wait for its answer.
"""

from threading import Lock
from typing import Final

PAUSE: Final = 0.2
"""Part of the last request's duration. After such a pause no other call is expected."""

PAUSE_MAX_SECONDS: Final = 0.005
FORGOTTEN_SECONDS: Final = 0.1
"""A caller that comes later than this after the last answer waits for no other."""


class Linger:
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

    def lingers(self, waiting: int) -> bool:
        """Return whether a request of ``waiting`` calls should wait a moment for more.

        It does for callers that were answered together, and as a group for a smaller one, which
        would stay apart for ever.
        """
        return self._expected > 0 or (waiting > 1 and 0 < self._under_way <= waiting)

    def came(self, at: float) -> None:
        """Note that a caller has come."""
        forgotten = at - self._answered_at > FORGOTTEN_SECONDS
        self._expected = 0 if forgotten else max(0, self._expected - 1)

    def expect_none(self) -> None:
        """Expect no call any more."""
        self._expected = 0

    def sent(self, calls: int) -> None:
        """Note that a request of ``calls`` calls starts."""
        self._under_way += calls

    def answered(self, calls: int, began: float, ended: float) -> None:
        """Note the end of a request, from ``began`` to ``ended`` (seconds).

        A single call expects no other.
        """
        self._under_way -= calls
        if calls > 1:
            self._expected += calls
        self._answered_at = ended
        self.pause_seconds = min((ended - began) * PAUSE, PAUSE_MAX_SECONDS)
