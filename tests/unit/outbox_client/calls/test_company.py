"""Callers that were answered together are expected back, for a moment."""

from outbox_client.calls.company import FORGOTTEN_SECONDS, PAUSE_MAX_SECONDS, Company


def answered(calls: int, seconds: float = 0.01) -> Company:
    company = Company()
    answer(company, calls, seconds)
    return company


def answer(company: Company, calls: int, seconds: float = 0.01) -> None:
    company.sent(calls)
    company.answered(calls, 0.0, seconds)


def test_nobody_is_expected_at_first() -> None:
    company = Company()
    company.came(1.0)
    assert not company.is_expected(1)


def test_those_answered_together_are_expected_until_the_last_has_come() -> None:
    company = answered(3)
    expected = []
    for _ in range(3):
        company.came(0.02)
        expected.append(company.is_expected(1))
    assert expected == [True, True, False]


def test_nobody_is_expected_long_after_the_last_answer() -> None:
    company = answered(3, seconds=0.01)
    company.came(0.02 + FORGOTTEN_SECONDS)
    assert not company.is_expected(1)


def test_a_group_waits_for_a_smaller_one_that_is_under_way() -> None:
    company = Company()
    company.sent(2)
    assert [company.is_expected(waiting) for waiting in (1, 2, 3)] == [False, True, True]


def test_the_pause_is_a_part_of_the_last_request_and_has_a_limit() -> None:
    assert 0 < answered(3, seconds=0.001).pause_seconds < 0.001
    assert answered(3, seconds=60.0).pause_seconds == PAUSE_MAX_SECONDS
