"""Callers that were answered together are expected back, for a moment."""

from outbox_client.calls.linger import FORGOTTEN_SECONDS, PAUSE_MAX_SECONDS, Linger


def answered(calls: int, seconds: float = 0.01) -> Linger:
    linger = Linger()
    answer(linger, calls, seconds)
    return linger


def answer(linger: Linger, calls: int, seconds: float = 0.01) -> None:
    linger.sent(calls)
    linger.answered(calls, 0.0, seconds)


def test_those_answered_together_are_expected_until_the_last_has_come() -> None:
    linger = answered(3)
    expected = []
    for _ in range(3):
        linger.came(0.02)
        expected.append(linger.lingers(1))
    assert expected == [True, True, False]


def test_nobody_is_expected_long_after_the_last_answer() -> None:
    linger = answered(3, seconds=0.01)
    linger.came(0.02 + FORGOTTEN_SECONDS)
    assert not linger.lingers(1)


def test_a_group_waits_for_a_smaller_one_that_is_under_way() -> None:
    linger = Linger()
    linger.sent(2)
    assert [linger.lingers(waiting) for waiting in (1, 2, 3)] == [False, True, True]


def test_the_pause_is_a_part_of_the_last_request_and_has_a_limit() -> None:
    assert 0 < answered(3, seconds=0.001).pause_seconds < 0.001
    assert answered(3, seconds=60.0).pause_seconds == PAUSE_MAX_SECONDS
