"""Every event of a producer or an operator in every state; checks: test_verdicts_in_states.py."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from outbox.messages.message_id import parse_message_id
from tests.contract.service.fixtures_service import PUBLISHED, ServicePlace
from tests.contract.service.fixtures_service_model import MAX_AGE
from tests.integration.api.fixtures_service import TOPIC

pytestmark = pytest.mark.postgres

GROUP = "account"
NEVER_ISSUED = "00000000-0000-8000-8000-000000000001"
DECISION_OF = {"COMMITTED": "COMMIT", "PUBLISHED": "COMMIT", "ROLLED_BACK": "ROLLBACK"}
OPERATOR = {"operator": "night shift", "reason": "asked by the producer"}
Said = tuple[object, ...]
NOT_FOUND: Said = (404, "message-not-found")
NOT_RECHECKABLE: Said = (409, "not-recheckable")
AGAINST_COMMIT: Said = (409, "COMMIT")
AGAINST_ROLLBACK: Said = (409, "ROLLBACK")
COMMIT_IN: dict[str, Said] = {
    "ABSENT": NOT_FOUND,
    "PREPARED": (200, "COMMITTED", False),
    "PARKED": (200, "COMMITTED", False),
    "COMMITTED": (200, "COMMITTED", True),
    "PUBLISHED": (200, "PUBLISHED", True),
    "ROLLED_BACK": AGAINST_ROLLBACK,
}
ROLLBACK_IN: dict[str, Said] = {
    "ABSENT": NOT_FOUND,
    "PREPARED": (200, "ROLLED_BACK", False),
    "PARKED": (200, "ROLLED_BACK", False),
    "COMMITTED": AGAINST_COMMIT,
    "PUBLISHED": AGAINST_COMMIT,
    "ROLLED_BACK": (200, "ROLLED_BACK", True),
}
UNKNOWN_IN: dict[str, Said] = {
    "ABSENT": NOT_FOUND,
    "PREPARED": (200, "PREPARED", False),
    "PARKED": (200, "PARKED", False),
    "COMMITTED": (200, "COMMITTED", True),
    "PUBLISHED": (200, "PUBLISHED", True),
    "ROLLED_BACK": (200, "ROLLED_BACK", True),
}
RECHECK_IN: dict[str, Said] = {
    "ABSENT": NOT_FOUND,
    "PREPARED": (202, "PREPARED"),
    "PARKED": (202, "PREPARED"),
    "COMMITTED": NOT_RECHECKABLE,
    "PUBLISHED": NOT_RECHECKABLE,
    "ROLLED_BACK": NOT_RECHECKABLE,
}
EVENTS: dict[str, tuple[str, dict[str, str], dict[str, Said]]] = {
    "end COMMIT": ("end", {"decision": "COMMIT"}, COMMIT_IN),
    "end ROLLBACK": ("end", {"decision": "ROLLBACK"}, ROLLBACK_IN),
    "end UNKNOWN": ("end", {"decision": "UNKNOWN"}, UNKNOWN_IN),
    "operator COMMIT": ("force-end", {**OPERATOR, "decision": "COMMIT"}, COMMIT_IN),
    "operator ROLLBACK": ("force-end", {**OPERATOR, "decision": "ROLLBACK"}, ROLLBACK_IN),
    "recheck": ("recheck", OPERATOR, RECHECK_IN),
}
ROWS = """
SELECT (SELECT count(*) FROM outbox.op_message WHERE half_id = %(half)s),
    (SELECT count(*) FROM outbox.commit_log WHERE %(half)s = ANY (half_ids)),
    (SELECT count(*) FROM outbox.audit_log WHERE half_id = %(half)s)
"""


def body(state: str, value: str = "{}") -> dict[str, str]:
    """Return the prepare of the message that gets into a state."""
    named = {"producer_group": GROUP, "topic": TOPIC, "value": value}
    return {**named, "transaction_id": f"t-{state}"}


async def one_in_each_state(place: ServicePlace) -> dict[str, str]:
    """Return the id of a message in each state."""
    group = await place.register(GROUP, rolls_back=False)
    ids = {"ABSENT": NEVER_ISSUED}

    async def add(state: str, decision: str = "UNKNOWN") -> None:
        ids[state] = (await place.call("", body(state))).json()["message_id"]
        await place.call(f"/{ids[state]}/end", {"decision": decision})

    await add("PARKED")
    await place.pass_time(MAX_AGE)
    await place.check(group)
    await add("PUBLISHED", "COMMIT")
    await place.checker().execute(PUBLISHED)
    await add("COMMITTED", "COMMIT")
    await add("ROLLED_BACK", "ROLLBACK")
    await add("PREPARED")
    shown = {state: (await place.read(ids[state])).get("state", "ABSENT") for state in ids}
    assert shown == {state: state for state in ids}
    return ids


def seen(answer: httpx2.Response) -> Said:
    """Return the status and the relevant words of an answer."""
    said: dict[str, Any] = answer.json()
    match answer.status_code:
        case 200:
            return (200, said["state"], said["already_ended"])
        case 202:
            return (202, said["state"])
        case 409 if said["code"] == "already-ended":
            return (409, said["winning_decision"])
        case status:
            return (status, said["code"])


@pytest.mark.parametrize("event", EVENTS)
async def test_an_event_in_every_state_follows_the_table(
    place: ServicePlace, subtests: pytest.Subtests, event: str
) -> None:
    path, sent, expected = EVENTS[event]
    for state, message_id in (await one_in_each_state(place)).items():
        with subtests.test(state):
            assert seen(await place.call(f"/{message_id}/{path}", sent)) == expected[state]
            after = (await place.read(message_id)).get("state", "ABSENT")
            decided = str(expected[state][1])
            assert after == (decided if decided in expected else state)
            half = parse_message_id(message_id)[0]
            ((ops, listed, audited),) = await place.checker().rows(ROWS, half=half)
            assert ops == (after in ("COMMITTED", "PUBLISHED", "ROLLED_BACK"))
            assert listed == (after in ("COMMITTED", "PUBLISHED"))
            operator_acts = path != "end" and expected[state] not in (NOT_FOUND, NOT_RECHECKABLE)
            assert audited == operator_acts


async def test_a_repeated_prepare_in_every_state_is_replayed_or_refused_and_changes_nothing(
    place: ServicePlace, subtests: pytest.Subtests
) -> None:
    for state, message_id in (await one_in_each_state(place)).items():
        if state == "ABSENT":
            continue
        with subtests.test(state):
            same = await place.call("", body(state))
            other = await place.call("", body(state, "other"))
            expected = 201 if state in ("PREPARED", "PARKED") else 409
            assert (same.status_code, same.json()["message_id"]) == (expected, message_id)
            assert ("idempotency-replayed" in same.headers) == (expected == 201)
            if expected == 409:
                assert same.json()["code"] == "already-ended"
                assert same.json()["winning_decision"] == DECISION_OF[state]
            assert (other.status_code, other.json()["code"]) == (422, "transaction-id-reused")
            assert (await place.read(message_id))["state"] == state
