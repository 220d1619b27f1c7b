"""The sealed session: who opens it, and for how long."""

from __future__ import annotations

from api.console.session import IDLE_SECONDS, LONGEST_SECONDS, SKEW_SECONDS, SessionSeal
from tests.unit.checker.checks.fixtures_fakes import ManualClock


def test_a_session_is_opened_with_the_same_secret_alone() -> None:
    clock = ManualClock()
    session = SessionSeal(b"secret", clock).begin("obx_a_b_c", "Ada")
    sealed = SessionSeal(b"secret", clock).seal(session)
    assert SessionSeal(b"secret", clock).open(sealed) == session
    assert SessionSeal(b"other", clock).open(sealed) is None


def test_the_sealed_text_and_the_printed_session_hold_no_key() -> None:
    seal = SessionSeal(b"secret", ManualClock())
    session = seal.begin("obx_a_b_c", "Ada")
    for text in (seal.seal(session), repr(session)):
        assert "obx_" not in text
        assert session.csrf not in text


def test_a_session_that_nobody_uses_ends_and_a_used_one_has_an_end_too() -> None:
    clock = ManualClock()
    seal = SessionSeal(b"secret", clock)
    session = seal.begin("k", "Ada")
    idle = seal.seal(session)
    clock.seconds += IDLE_SECONDS
    assert seal.open(idle) == session
    used = seal.seal(session)
    clock.seconds += 1
    assert seal.open(idle) is None
    while clock.now().timestamp() - session.begun_at <= LONGEST_SECONDS:
        assert seal.open(used) == session
        used = seal.seal(session)
        clock.seconds += IDLE_SECONDS / 2
    assert seal.open(used) is None


def test_hosts_whose_clocks_differ_by_minutes_open_each_others_sessions_and_no_later_ones() -> None:
    ahead, behind = ManualClock(), ManualClock()
    ahead.seconds += SKEW_SECONDS
    first, second = SessionSeal(b"secret", ahead), SessionSeal(b"secret", behind)
    session = first.begin("k", "Ada")
    assert second.open(first.seal(session)) == session
    assert first.open(second.seal(session)) == session
    ahead.seconds += 1
    assert second.open(first.seal(session)) is None


def test_what_we_did_not_seal_opens_nothing() -> None:
    seal = SessionSeal(b"secret", ManualClock())
    sealed = seal.seal(seal.begin("k", "Ada"))
    for text in (None, "", "nonsense", sealed[:-2], sealed + "A", "\u00e4", "x" * 5000):
        assert seal.open(text) is None
