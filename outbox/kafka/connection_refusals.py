"""Why a connection was refused: a request that fails then says only that no broker is there.

The library tells a callback, when the client is served, that a login or a handshake has failed.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import Final

from confluent_kafka import KafkaError

RECENT_SECONDS: Final = 60.0
_EXPLAINED: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})
_CHANGING: Final = re.compile(r"^\S+: |\s*\(after [^)]*\)|, \d+ identical error\(s\) suppressed")
"""The address of one of the brokers, times and counts: each text would be logged as a new one."""


class ConnectionRefusals:
    """The last refusal that a client was told of."""

    def __init__(self) -> None:
        self._last = ""
        self._at = float("-inf")

    def note(self, error: KafkaError) -> None:
        """Note an error of the client; its callback for errors."""
        if error.code() in _EXPLAINED:
            self._last, self._at = _CHANGING.sub("", error.str()), monotonic()

    def explain(self, text: str) -> str:
        """Return the text of an error, with the refusal that explains it if there was one."""
        return f"{text}: {self._last}" if monotonic() - self._at < RECENT_SECONDS else text
