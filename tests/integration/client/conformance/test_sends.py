"""Each client sends as docs/rest.md says, whatever the service answers.

Python's at once, those of other languages with ``pytest.mark.deep``.
"""

from __future__ import annotations

import pytest

from tests.integration.client.conformance.fixtures_drivers import Driver, b64
from tests.integration.client.fixtures_contract_server import (
    CUT,
    LOSE_ANSWER,
    ContractService,
    Fault,
    Members,
    fault,
    problem,
)

WORKS = "an answer as usual"
PASSING = {
    "connection cut": CUT,
    "answer lost": LOSE_ANSWER,
    "408": fault(408, "timeout"),
    "429": fault(429, "rate-limited", retry_after="0"),
    "502 of a proxy": Fault(502, b"<html>bad gateway</html>"),
    "503": fault(503, "database-unavailable"),
    "504": Fault(504, b"<html>too late</html>"),
}
FINAL = {
    **{str(status): fault(status, "refused") for status in (400, 401, 403, 404, 413, 415, 422)},
    "200": Fault(200, {"items": []}),
    "301": Fault(301, {}, {"location": "/v1/half-messages"}),
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
def test_a_prepare_and_an_end_are_repeated_until_the_answer_is_certain(
    driver: Driver, service: ContractService, service_url: str, passing: Fault | str
) -> None:
    service.faults.extend([passing, passing, WORKS, passing, passing])
    assert driver.send(service_url, "invoice-7") == [("ended", 1)]
    sent = [item.get("transaction_id") for (item,) in service.sent()]
    assert sent == [*["invoice-7"] * 3, *[None] * 3]
    assert [half.decision for half in service.halves.values()] == ["COMMIT"]


@pytest.mark.parametrize("final", FINAL.values(), ids=FINAL)
def test_a_refused_prepare_is_not_repeated_and_runs_no_local_transaction(
    driver: Driver, service: ContractService, service_url: str, final: Fault
) -> None:
    service.faults.append(final)
    assert driver.send(service_url, "invoice-7") == [("refused", 0)]
    assert len(service.requests) == 1


def test_a_refused_end_is_told_apart_and_not_repeated(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    service.faults.extend([WORKS, fault(404, "message-not-found")])
    assert driver.send(service_url, "invoice-7") == [("end failed", 1)]
    assert len(service.requests) == 2


def test_a_service_that_never_answers_is_given_up(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    service.faults.extend([CUT] * 1000)
    assert driver.send(service_url, "invoice-7", seconds=0.5) == [("no answer", 0)]
    assert 2 < len(service.requests) < 1000


@pytest.mark.parametrize("status", [429, 503])
def test_no_request_comes_before_the_time_that_the_service_asks_for(
    driver: Driver, service: ContractService, service_url: str, status: int
) -> None:
    service.faults.append(fault(status, "busy", retry_after="30"))
    ((outcome, ran),) = driver.send(service_url, "invoice-7")
    assert (outcome in ("refused", "no answer"), ran) == (True, 0)
    assert len(service.requests) == 1


def test_a_transaction_id_that_is_committed_runs_no_second_local_transaction(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    driver.send(service_url, "invoice-7")
    assert driver.send(service_url, "invoice-7") == [("committed", 0)]


def test_an_id_that_is_rolled_back_is_prepared_anew_twice(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    for number, seen in enumerate(["invoice-7", "invoice-7/2", "invoice-7/3"], start=1):
        expected = [("local", 1)]
        assert driver.send(service_url, "invoice-7", local="fail") == expected
        half = service.half_of(seen)
        assert half is not None, number
        half.decide("ROLLBACK", "check")
    assert driver.send(service_url, "invoice-7") == [("rolled back", 0)]


def test_an_operator_who_rolls_back_before_the_end_is_told_apart(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    _, rolled_back, _ = problem(409, "already-ended", winning_decision="ROLLBACK")
    service.faults.extend([WORKS, Fault(409, rolled_back)])
    assert driver.send(service_url, "invoice-7") == [("end failed", 1)]


def stated(body: Members) -> Members:
    """Return the members of a request that say something."""
    return {name: value for name, value in body.items() if value not in (None, {}, [])}


def test_bytes_and_nulls_are_sent_as_the_contract_says(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    headers = {"text": b64(b"north"), "bytes": b64(b"\x01\xff"), "none": None}
    driver.send(service_url, "a", key=b64(b"\xff\xfe"), value=b64(b"\x00\xff"), headers=headers)
    driver.send(service_url, "b", value=None)
    bytes_sent, tombstone = (stated(item) for (item,) in service.sent() if "topic" in item)
    always = {"producer_group": "billing", "topic": "invoices"}
    base64 = {"bytes": {"base64": "Af8="}, "none": None}
    sent_headers = bytes_sent.pop("headers")
    assert isinstance(sent_headers, dict)
    assert sent_headers.pop("text") in ("north", {"base64": "bm9ydGg="})
    assert sent_headers == base64
    assert bytes_sent == {
        **always, "transaction_id": "a", "key_base64": "//4=", "value_base64": "AP8=",
    }  # fmt: skip
    assert tombstone == {**always, "transaction_id": "b"}


def test_many_sends_share_requests_and_each_has_its_own_result(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    """An answer is lost, and items are repeated or refused: the others go on."""
    ids = [f"invoice-{number}" for number in range(64)]
    assert driver.send(service_url, ids[7]) == [("ended", 1)]
    assert driver.send(service_url, ids[8], local="fail", value=b64(b"w")) == [("local", 1)]
    service.requests.clear()
    service.batch_faults.append(LOSE_ANSWER)
    service.item_faults.extend([fault(503, "database-unavailable")] * 2)
    expected = [("ended", 1)] * 7 + [("committed", 0), ("refused", 0)] + [("ended", 1)] * 55
    assert driver.send(service_url, *ids) == expected
    assert len(service.requests) < 64
    assert [half.decision for half in service.halves.values()].count("COMMIT") == 63


@pytest.mark.parametrize("count", [1, 16], ids=["alone", "in a batch"])
def test_messages_under_one_decision_are_one_prepare_and_one_end_of_the_first(
    driver: Driver, service: ContractService, service_url: str, count: int
) -> None:
    ids = [f"invoice-{number}" for number in range(count)]
    sent = driver.send(service_url, *ids, value=b64(b"\xff"), followers=[b64(b"\xfe")])
    assert sent == [("ended", 1)] * count
    messages = [{"topic": "invoices", "value_base64": text} for text in ("/w==", "/g==")]
    assert len(service.halves) == count
    for half in service.halves.values():
        assert stated(half.content).keys() == {"producer_group", "transaction_id", "messages"}
        assert [stated(each) for each in half.messages] == messages
        assert half.decision == "COMMIT"


def test_a_request_has_a_thousand_messages_at_most_however_few_its_items_are(
    driver: Driver, service: ContractService, service_url: str
) -> None:
    ids = [f"invoice-{number}" for number in range(64)]
    sent = driver.send(service_url, *ids, followers=[b64(b"w")] * 49)
    assert sent == [("ended", 1)] * 64
    assert 1 < max(len(items) for items in service.sent() if "messages" in items[0]) <= 20


@pytest.mark.parametrize("status", [400, 413, 422, 429])
def test_a_batch_that_is_refused_as_a_whole_is_sent_item_by_item(
    driver: Driver, service: ContractService, service_url: str, status: int
) -> None:
    service.batch_faults.append(fault(status, "refused", retry_after="0"))
    outcomes = driver.send(service_url, *(f"invoice-{number}" for number in range(16)))
    assert outcomes == [("ended", 1)] * 16
    assert not service.batch_faults
