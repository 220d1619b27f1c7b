from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.http_checks.classification import classify
from outbox.http_checks.request import CheckRequest

ID = "0190c3a2-0000-8000-8000-000000000001"
OTHER = "0190c3a2-0000-8000-8000-000000000002"
JSON = "application/json"


def read(
    status: int = 200,
    body: bytes | str | None = None,
    *ids: str,
    batch: bool = False,
    content_type: str = JSON,
    **headers: str,
) -> list[CheckAnswer]:
    """Return what an HTTP answer says about each id."""
    asked = CheckRequest(body=b"", headers={}, message_ids=ids or (ID,), batch=batch)
    sent = {name.replace("_", "-").title(): text for name, text in headers.items()}
    raw = body.encode() if isinstance(body, str) else body
    return classify(status, {"Content-Type": content_type, **sent}, raw, asked)


def said(decision: object, **members: object) -> CheckAnswer:
    [answer] = read(200, json.dumps({"message_id": ID, "decision": decision, **members}))
    return answer


COMMIT = json.dumps({"message_id": ID, "decision": "COMMIT"})


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_a_charset_and_a_byte_order_mark_change_nothing(before: str) -> None:
    [answer] = read(200, before + COMMIT, content_type='application/json; charset="UTF8"')
    assert answer.outcome is Outcome.COMMIT


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
    [answer] = read(200, BAD[case])
    assert (answer.outcome, answer.spent, answer.verdict) == (Outcome.BAD_VERDICT, True, None)


def test_a_verdict_in_the_wrong_wrapping_is_no_verdict() -> None:
    answers = [
        *read(200, None),
        *read(200, COMMIT, content_type="text/html"),
        *read(200, COMMIT, content_type=""),
        *read(200, COMMIT, content_encoding="gzip"),
    ]
    errors = ["too_long", "content_type", "content_type", "encoded"]
    assert [each.error for each in answers] == errors


@pytest.mark.parametrize("code", [201, 204, 301, 307, 400, 404, 500, 501])
def test_another_status_is_spent(code: int) -> None:
    [answer] = read(code)
    assert (answer.outcome, answer.http_status, answer.spent) == (Outcome.HTTP_ERROR, code, True)


@pytest.mark.parametrize("code", [410, 429, 502, 503, 504])
def test_an_overloaded_or_gone_endpoint_spends_nothing(code: int) -> None:
    [answer] = read(code)
    assert (answer.outcome, answer.spent) == (Outcome.HTTP_ERROR, False)
    assert answer.gone is (code == 410)


@pytest.mark.parametrize(
    ("retry_after", "date", "seconds"),
    [
        ("120", "", 120),
        ("0", "", 0),
        ("1000000000", "", 3600),
        ("9" * 5000, "", 3600),
        ("-5", "", None),
        ("soon", "", None),
        ("١٢", "", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", 60),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 08:27:00 GMT", 0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "", None),
    ],
)
def test_retry_after_is_honoured_up_to_an_hour(
    retry_after: str, date: str, seconds: int | None
) -> None:
    [answer] = read(503, retry_after=retry_after, date=date)
    assert answer.retry_after_seconds == seconds


def test_retry_after_of_a_spent_status_is_not_asked_for() -> None:
    assert read(500, retry_after="60")[0].retry_after_seconds is None


def test_an_unknown_may_ask_for_a_later_check() -> None:
    assert said("UNKNOWN", retry_after_seconds=90).retry_after_seconds == 90
    assert said("COMMIT", retry_after_seconds="soon").outcome is Outcome.COMMIT


def test_a_reason_is_cut_to_what_can_be_stored() -> None:
    answer = said("COMMIT", reason="a\0b\ud800" + "c" * 600)
    assert answer.reason is not None
    assert (len(answer.reason), answer.reason[:3]) == (500, "ab?")


# -- Batches --------------------------------------------------------------------------------------

MINE, OTHERS = {"message_id": ID, "decision": "COMMIT"}, {"message_id": OTHER, "decision": "COMMIT"}


@pytest.mark.parametrize(
    ("verdicts", "outcomes"),
    [
        ([OTHERS | {"decision": "ROLLBACK"}, MINE], [Outcome.COMMIT, Outcome.ROLLBACK]),
        ([MINE], [Outcome.COMMIT, Outcome.BAD_VERDICT]),
        ([MINE, MINE | {"decision": "ROLLBACK"}, OTHERS], [Outcome.BAD_VERDICT, Outcome.COMMIT]),
        ([OTHERS, {"message_id": ID}, 7, None], [Outcome.BAD_VERDICT, Outcome.COMMIT]),
        ([{"message_id": "another", "decision": "COMMIT"}], [Outcome.BAD_VERDICT] * 2),
    ],
    ids=["by id", "missing id", "two decisions", "no decision", "not asked for"],
)
def test_a_batch_answers_each_message_by_its_id(
    verdicts: list[object], outcomes: list[Outcome]
) -> None:
    answers = read(200, json.dumps({"verdicts": verdicts}), ID, OTHER, batch=True)
    assert [each.outcome for each in answers] == outcomes


@pytest.mark.parametrize("body", ["{}", '{"verdicts":"COMMIT"}', "[]", COMMIT, None])
def test_a_batch_without_verdicts_is_bad_for_every_message(body: str | None) -> None:
    answers = read(200, body, ID, OTHER, batch=True)
    assert [each.outcome for each in answers] == [Outcome.BAD_VERDICT] * 2


def test_a_status_concerns_every_message_of_a_batch() -> None:
    answers = read(503, None, ID, OTHER, batch=True)
    assert [each.outcome for each in answers] == [Outcome.HTTP_ERROR] * 2


# -- Any answer -----------------------------------------------------------------------------------


@example(retry_after="Fri, 31 Dec 99999999999 23:59:59 GMT", date="")
@example(retry_after="Fri, 31 Dec 0001 00:00:00 +2359", date="Fri, 31 Dec 9999 23:59:59 -2359")
@given(retry_after=st.text(max_size=40), date=st.text(max_size=40))
def test_whatever_the_headers_say_an_answer_is_classified(retry_after: str, date: str) -> None:
    [answer] = read(429, retry_after=retry_after, date=date)
    assert (answer.outcome, answer.spent) == (Outcome.HTTP_ERROR, False)
    assert answer.retry_after_seconds is None or 0 <= answer.retry_after_seconds <= 3600


@given(
    body=st.binary(max_size=60), media_type=st.sampled_from([JSON, "", "x"]), batch=st.booleans()
)
def test_whatever_the_body_is_an_answer_is_classified(
    body: bytes, media_type: str, batch: bool
) -> None:
    answers = read(200, body, ID, OTHER, batch=batch, content_type=media_type)
    assert [each.verdict for each in answers] == [None, None]
