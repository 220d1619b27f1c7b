from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.checks.check_round import Answer, Outcome
from outbox.http_checks.classification import HttpAnswer, classify, classify_batch

ID = "0190c3a2-0000-8000-8000-000000000001"
OTHER = "0190c3a2-0000-8000-8000-000000000002"
JSON = "application/json"


def ok(body: bytes | str, content_type: str = JSON, **fields: Any) -> HttpAnswer:
    raw = body.encode() if isinstance(body, str) else body
    return HttpAnswer(status=200, content_type=content_type, body=raw, **fields)


def says(decision: object, **members: object) -> HttpAnswer:
    return ok(json.dumps({"message_id": ID, "decision": decision, **members}))


@pytest.mark.parametrize(
    ("decision", "outcome", "spent"),
    [
        ("COMMIT", Outcome.COMMIT, False),
        ("ROLLBACK", Outcome.ROLLBACK, False),
        ("UNKNOWN", Outcome.UNKNOWN, True),
    ],
)
def test_a_valid_verdict_is_accepted(decision: str, outcome: Outcome, spent: bool) -> None:
    answer = classify(says(decision), ID)
    assert (answer.outcome, answer.spent) == (outcome, spent)


def test_a_charset_and_other_members_change_nothing() -> None:
    answer = ok(
        json.dumps({"message_id": ID, "decision": "COMMIT", "extra": [1]}),
        "application/json; charset=utf-8",
    )
    assert classify(answer, ID) == Answer(outcome=Outcome.COMMIT, http_status=200)


BAD: dict[str, bytes | str] = {
    "wrong id": json.dumps({"message_id": OTHER, "decision": "COMMIT"}),
    "missing id": json.dumps({"decision": "COMMIT"}),
    "id of another type": json.dumps({"message_id": 7, "decision": "COMMIT"}),
    "missing decision": json.dumps({"message_id": ID}),
    "decision in lower case": json.dumps({"message_id": ID, "decision": "commit"}),
    "decision of another type": json.dumps({"message_id": ID, "decision": ["COMMIT"]}),
    "decision in words": json.dumps({"message_id": ID, "decision": "COMMIT please"}),
    "repeated decision": f'{{"message_id":"{ID}","decision":"COMMIT","decision":"ROLLBACK"}}',
    "repeated equal decision": f'{{"message_id":"{ID}","decision":"COMMIT","decision":"COMMIT"}}',
    "repeated id": f'{{"message_id":"{OTHER}","message_id":"{ID}","decision":"COMMIT"}}',
    "reason of another type": json.dumps({"message_id": ID, "decision": "COMMIT", "reason": 1}),
    "negative delay": json.dumps(
        {"message_id": ID, "decision": "UNKNOWN", "retry_after_seconds": -1}
    ),
    "delay over an hour": json.dumps(
        {"message_id": ID, "decision": "UNKNOWN", "retry_after_seconds": 3601}
    ),
    "boolean delay": json.dumps(
        {"message_id": ID, "decision": "UNKNOWN", "retry_after_seconds": True}
    ),
    "NaN": f'{{"message_id":"{ID}","decision":"COMMIT","x":NaN}}',
    "array": json.dumps([{"message_id": ID, "decision": "COMMIT"}]),
    "text": json.dumps("COMMIT"),
    "null": "null",
    "empty": "",
    "html": "<html>COMMIT</html>",
    "trailing data": json.dumps({"message_id": ID, "decision": "COMMIT"}) + "x",
    "deep": "[" * 15_000,
    "huge number": '{"x":' + "9" * 10_000 + "}",
    "not utf-8": b'{"message_id":"\xff"}',
    "utf-16": json.dumps({"message_id": ID, "decision": "COMMIT"}).encode("utf-16"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_200_that_is_no_verdict_is_spent_and_decides_nothing(case: str) -> None:
    answer = classify(ok(BAD[case]), ID)
    assert (answer.outcome, answer.spent, answer.verdict) == (Outcome.BAD_VERDICT, True, None)


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(status=200, content_type=JSON, body=None),
        ok(json.dumps({"message_id": ID, "decision": "COMMIT"}), "text/html"),
        ok(json.dumps({"message_id": ID, "decision": "COMMIT"}), ""),
        ok(json.dumps({"message_id": ID, "decision": "COMMIT"}), content_encoding="gzip"),
    ],
    ids=["too long", "html", "no content type", "compressed"],
)
def test_a_verdict_in_the_wrong_wrapping_is_no_verdict(answer: HttpAnswer) -> None:
    assert classify(answer, ID).outcome is Outcome.BAD_VERDICT


@pytest.mark.parametrize(
    "code", [201, 202, 204, 299, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 499, 500, 501]
)
def test_another_status_is_spent(code: int) -> None:
    answer = classify(HttpAnswer(status=code, content_type=JSON), ID)
    assert (answer.outcome, answer.http_status, answer.spent) == (Outcome.HTTP_ERROR, code, True)


@pytest.mark.parametrize("code", [410, 429, 502, 503, 504])
def test_an_overloaded_or_gone_endpoint_spends_nothing(code: int) -> None:
    answer = classify(HttpAnswer(status=code), ID)
    assert (answer.outcome, answer.spent, answer.gone) == (
        Outcome.HTTP_ERROR,
        False,
        code == 410,
    )


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.UNREACHABLE, Outcome.BLOCKED])
def test_silence_spends_nothing(outcome: Outcome) -> None:
    answer = Answer(outcome=outcome)
    assert (answer.spent, answer.verdict) == (False, None)


@pytest.mark.parametrize(
    ("retry_after", "date", "seconds"),
    [
        ("120", None, 120),
        ("0", None, 0),
        ("1000000000", None, 3600),
        ("9" * 5000, None, 3600),
        ("-5", None, None),
        ("soon", None, None),
        ("١٢", None, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", 60),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 08:27:00 GMT", 0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None, None),
    ],
)
def test_retry_after_is_honoured_up_to_an_hour(
    retry_after: str, date: str | None, seconds: int | None
) -> None:
    answer = HttpAnswer(status=503, retry_after=retry_after, date=date)
    assert classify(answer, ID).retry_after_seconds == seconds


def test_retry_after_of_a_spent_status_is_not_asked_for() -> None:
    assert classify(HttpAnswer(status=500, retry_after="60"), ID).retry_after_seconds is None


def test_an_unknown_may_ask_for_a_later_check() -> None:
    assert classify(says("UNKNOWN", retry_after_seconds=90), ID).retry_after_seconds == 90
    assert classify(says("COMMIT", retry_after_seconds="soon"), ID).outcome is Outcome.COMMIT


@pytest.mark.parametrize(("number", "seconds"), [("3.0", 3), ("3e2", 300), ("-0.0", 0)])
def test_a_number_without_fraction_is_a_whole_delay(number: str, seconds: int) -> None:
    body = f'{{"message_id":"{ID}","decision":"UNKNOWN","retry_after_seconds":{number}}}'
    delay = classify(ok(body), ID).retry_after_seconds
    assert (delay, type(delay)) == (seconds, int)


@pytest.mark.parametrize("number", ["3.5", "1e400", "-1e400", "1e300", "3600.5"])
def test_a_delay_with_a_fraction_or_out_of_range_is_bad(number: str) -> None:
    body = f'{{"message_id":"{ID}","decision":"UNKNOWN","retry_after_seconds":{number}}}'
    assert classify(ok(body), ID).outcome is Outcome.BAD_VERDICT


def test_a_reason_is_cut_to_what_can_be_stored() -> None:
    answer = classify(says("COMMIT", reason="a\0b\ud800" + "c" * 600), ID)
    assert answer.reason is not None
    assert (len(answer.reason), answer.reason[:3]) == (500, "ab?")


def batch(*verdicts: object) -> HttpAnswer:
    return ok(json.dumps({"verdicts": list(verdicts)}))


def outcomes(answer: HttpAnswer, *ids: str) -> list[Outcome]:
    return [each.outcome for each in classify_batch(answer, ids)]


def test_a_batch_answers_each_message_by_its_id() -> None:
    answer = batch(
        {"message_id": OTHER, "decision": "ROLLBACK"}, {"message_id": ID, "decision": "COMMIT"}
    )
    assert outcomes(answer, ID, OTHER) == [Outcome.COMMIT, Outcome.ROLLBACK]


def test_a_missing_id_is_bad_for_that_message_alone() -> None:
    answer = batch({"message_id": ID, "decision": "COMMIT"})
    assert outcomes(answer, ID, OTHER) == [Outcome.COMMIT, Outcome.BAD_VERDICT]


def test_two_decisions_for_one_id_are_bad_for_that_message_alone() -> None:
    answer = batch(
        {"message_id": ID, "decision": "COMMIT"},
        {"message_id": ID, "decision": "ROLLBACK"},
        {"message_id": OTHER, "decision": "COMMIT"},
    )
    assert outcomes(answer, ID, OTHER) == [Outcome.BAD_VERDICT, Outcome.COMMIT]


def test_a_verdict_on_an_id_that_was_not_asked_about_decides_nothing() -> None:
    other = {"message_id": OTHER, "decision": "COMMIT"}
    answer = batch(other, {"message_id": ID}, other, 7, None)
    assert outcomes(answer, ID) == [Outcome.BAD_VERDICT]


@pytest.mark.parametrize(
    "answer",
    [
        ok("{}"),
        ok('{"verdicts":"COMMIT"}'),
        ok("[]"),
        ok(json.dumps({"message_id": ID, "decision": "COMMIT"})),
        HttpAnswer(status=200, content_type=JSON, body=None),
    ],
)
def test_a_batch_without_verdicts_is_bad_for_every_message(answer: HttpAnswer) -> None:
    assert outcomes(answer, ID, OTHER) == [Outcome.BAD_VERDICT] * 2


def test_a_status_concerns_every_message_of_a_batch() -> None:
    assert outcomes(HttpAnswer(status=503), ID, OTHER) == [Outcome.HTTP_ERROR] * 2


numbers = st.integers(min_value=-(10**30), max_value=10**30).map(str)
dates = st.one_of(
    st.text(max_size=40),
    st.builds(
        "{}, {} {} {} {}:{}:{} {}".format,
        st.sampled_from(["Fri", "x"]),
        numbers,
        st.sampled_from(["Dec", "Feb", "x"]),
        numbers,
        *[numbers] * 3,
        st.sampled_from(["GMT", "+2359", "-2359", "+99999999999999", "x"]),
    ),
)


@example(retry_after="Fri, 31 Dec 99999999999 23:59:59 GMT", date=None)
@example(retry_after="Fri, 31 Dec 0001 00:00:00 +2359", date="Fri, 31 Dec 9999 23:59:59 -2359")
@given(retry_after=dates, date=dates | st.none())
def test_whatever_the_headers_say_an_answer_is_classified(
    retry_after: str, date: str | None
) -> None:
    answer = classify(HttpAnswer(status=429, retry_after=retry_after, date=date), ID)
    assert (answer.outcome, answer.spent) == (Outcome.HTTP_ERROR, False)
    assert answer.retry_after_seconds is None or 0 <= answer.retry_after_seconds <= 3600


@given(body=st.binary(max_size=60), media_type=st.sampled_from([JSON, "", "x"]))
def test_whatever_the_body_is_an_answer_is_classified(body: bytes, media_type: str) -> None:
    assert classify(ok(body, media_type), ID).verdict is None
    found = classify_batch(ok(body, media_type), [ID, OTHER])
    assert [each.verdict for each in found] == [None, None]
