"""Rate limits per API key for prepares and reads; an end is never limited (P25).

Each key has a token bucket per process, filled at the key's rate and one second deep. Keys that a
key of some groups has created take from its bucket. A batch that is larger than the bucket passes
when the bucket is full and leaves it in debt, so the average rate holds for every batch size.
The fields are those of the IETF draft "RateLimit header fields for HTTP".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from api.http.exchange import HeaderList
from api.http.problems import Problem
from outbox.access import Caller
from outbox.clock import Clock

WINDOW_SECONDS: Final = 1
KEYS_MAX: Final = 10_000
"""Most keys whose buckets are kept; above it the one that was used longest ago is forgotten."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimit:
    """One limit of a process, for example of prepares; ``per_second`` 0 switches it off."""

    def __init__(self, name: str, per_second: float, clock: Clock) -> None:
        self._name = name
        self._per_second = per_second
        self._depth = max(1.0, per_second * WINDOW_SECONDS)
        self._clock = clock
        self._buckets: dict[str | None, _Bucket] = {}

    def spend(self, caller: Caller, items: int = 1) -> HeaderList:
        """Take ``items`` tokens from the key's bucket; return the header fields with the rest.

        Raises Problem ``rate-limited``, and takes nothing, when there are too few.
        """
        if not self._per_second:
            return []
        bucket = self._filled(caller.rated_key)
        missing = min(items, self._depth) - bucket.tokens
        if missing > 0:
            fields = {name.decode(): text.decode() for name, text in self._fields(bucket)}
            seconds = math.ceil(missing / self._per_second)
            raise Problem(slug="rate-limited", retry_after_seconds=seconds, headers=fields)
        bucket.tokens -= items
        return self._fields(bucket)

    def owe(self, caller: Caller, items: int) -> None:
        """Take tokens that are needed already, for what could not be known before."""
        if self._per_second and items > 0:
            self._filled(caller.rated_key).tokens -= items

    def _filled(self, key_id: str | None) -> _Bucket:
        now = self._clock.monotonic()
        bucket = self._buckets.pop(key_id, None) or _Bucket(self._depth, now)
        self._buckets[key_id] = bucket
        if len(self._buckets) > KEYS_MAX:
            del self._buckets[next(iter(self._buckets))]
        gained = (now - bucket.filled_at) * self._per_second
        bucket.tokens, bucket.filled_at = min(self._depth, bucket.tokens + gained), now
        return bucket

    def _fields(self, bucket: _Bucket) -> HeaderList:
        full_in = math.ceil((self._depth - bucket.tokens) / self._per_second)
        left = max(0, math.floor(bucket.tokens))
        policy = f'"{self._name}";q={math.floor(self._depth)};w={WINDOW_SECONDS}'
        return [
            (b"ratelimit-policy", policy.encode()),
            (b"ratelimit", f'"{self._name}";r={left};t={full_in}'.encode()),
        ]
