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


def test_those_of_two_requests_are_expected_together() -> None:
    company = answered(2)
    answer(company, 2)
    for _ in range(3):
        company.came(0.02)
    assert company.is_expected(1)


def test_a_call_that_was_sent_alone_has_no_company() -> None:
    assert not answered(1).is_expected(1)


def test_nobody_is_expected_long_after_the_last_answer() -> None:
    company = answered(3, seconds=0.01)
    company.came(0.02 + FORGOTTEN_SECONDS)
    assert not company.is_expected(1)


def test_nobody_is_expected_once_they_have_stayed_away() -> None:
    company = answered(3)
    company.stayed_away()
    assert not company.is_expected(1)


def test_a_group_waits_for_a_smaller_one_that_is_under_way() -> None:
    company = Company()
    company.sent(2)
    assert [company.is_expected(waiting) for waiting in (1, 2, 3)] == [False, True, True]


def test_two_single_callers_do_not_wait_for_each_other() -> None:
    company = Company()
    company.sent(1)
    assert not company.is_expected(1)


def test_the_pause_is_a_part_of_the_last_request_and_has_a_limit() -> None:
    assert 0 < answered(3, seconds=0.001).pause_seconds < 0.001
    assert answered(3, seconds=60.0).pause_seconds == PAUSE_MAX_SECONDS
