"""The bucket of an API key: its rate, its depth, and the debt of a large batch."""

from __future__ import annotations

from contextlib import suppress

import pytest

from api.http.problems import Problem, headers_of
from api.http.rate_limits import RateLimit
from outbox.access import Caller
from tests.unit.checker.checks.fixtures_fakes import ManualClock


def key(key_id: str) -> Caller:
    """Return a caller with this key."""
    return Caller(key_id=key_id, scopes=frozenset(), groups=None)


def refusal(limit: RateLimit, caller: Caller, items: int = 1) -> dict[str, str]:
    """Spend tokens that must be refused; return the header fields of the answer."""
    with pytest.raises(Problem) as refused:
        limit.spend(caller, items)
    assert refused.value.slug == "rate-limited"
    return headers_of(refused.value)


def test_a_key_spends_one_second_of_its_rate_at_once_and_then_waits() -> None:
    clock = ManualClock()
    limit = RateLimit("prepare", 2, clock)
    limit.spend(key("a"))
    last = dict(limit.spend(key("a")))
    assert last == {
        b"ratelimit-policy": b'"prepare";q=2;w=1',
        b"ratelimit": b'"prepare";r=0;t=1',
    }
    fields = refusal(limit, key("a"))
    assert (fields["retry-after"], fields["ratelimit"]) == ("1", '"prepare";r=0;t=1')
    clock.seconds += 0.5
    limit.spend(key("a"))
    refusal(limit, key("a"))


def test_a_batch_counts_its_items_and_a_larger_one_passes_and_leaves_a_debt() -> None:
    clock = ManualClock()
    limit = RateLimit("prepare", 10, clock)
    limit.spend(key("a"), 4)
    refusal(limit, key("a"), 7)
    clock.seconds += 1
    limit.spend(key("a"), 100)
    assert refusal(limit, key("a"))["retry-after"] == "10"
    clock.seconds += 9.2
    limit.spend(key("a"))


def test_a_rate_of_zero_limits_nothing() -> None:
    limit = RateLimit("prepare", 0, ManualClock())
    assert [limit.spend(key("a"), 1000) for _ in range(100)] == [[]] * 100


def test_a_bounded_number_of_keys_is_remembered_those_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api.http.rate_limits.KEYS_MAX", 3)
    limit = RateLimit("prepare", 1, ManualClock())
    accepted = list[str]()
    for name in ("old", "used", "a", "used", "b", "used", "old"):
        with suppress(Problem):
            limit.spend(key(name))
            accepted.append(name)
    assert accepted == ["old", "used", "a", "b", "old"], "who is forgotten has a full bucket"
