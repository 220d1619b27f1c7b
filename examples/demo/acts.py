"""The acts, in their order."""

from collections import Counter
from typing import Any

import httpx2

from examples.account_service.demo_switches import HEADER, DemoSwitch
from examples.demo.environment import BRANCH_GROUP, MAIN_GROUP, DemoEnvironment
from examples.demo.ledger import count
from examples.demo.narrator import Narrator
from examples.demo.poller import DeadlineExceeded, wait_until
from examples.demo.shoppers import PRICE, Plan, Shoppers
from outbox_client import AlreadyEnded, LocalTransactionState, TransactionProducer

BRANCH_PURCHASES = 3
LAST_OF_BRANCH = f"purchase-branch-{BRANCH_PURCHASES - 1}"
"""The branch is killed right after it; the others may have been checked before, if all is slow."""
HEAL_SECONDS = 180.0
PARK_SECONDS = 180.0
SETTLE_SECONDS = 90.0


def buy(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: many purchases at once, while account processes are killed."""
    narrator.act(
        f"{plan.purchases} purchases of {PRICE}",
        f"3 account processes share one port. {plan.deaths} of them will be killed right after "
        f"their own commit, before the end.",
    )
    shoppers = Shoppers(environment.main.service.url)
    with narrator.progress("bought", plan.purchases) as show:

        def watch(outcomes: Counter[str]) -> None:
            environment.main.revive()
            show(outcomes.total(), _counts(outcomes))

        outcomes = shoppers.buy_all(plan.baskets(), watch)
    narrator.show(f"results for the buyers: {_counts(outcomes)}")


def recover(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: the check-back finds the result that the killed processes could not send."""
    narrator.act(
        "Paid, but the end was never sent",
        "Some payments committed without an end: the outbox checks with the account service, which "
        "answers from its barrier.",
    )
    lost = plan.deaths + plan.lost_ends
    with narrator.progress("decided by a check", lost) as show:

        def all_decided() -> bool:
            environment.main.revive()
            waiting = len(environment.outbox.messages(state="PREPARED", producer_group=MAIN_GROUP))
            show(max(0, lost - max(0, waiting - plan.reviews)), "")
            return waiting <= plan.reviews

        wait_until("the check-back decides the lost ends", all_decided, HEAL_SECONDS)
    decisions = Counter(message["decision"] for message in _decided_by_check(environment))
    narrator.show(f"account processes killed and replaced: {environment.main.deaths}")
    narrator.show(f"decided by a check: {_counts(decisions)}")
    if decisions["ROLLBACK"]:
        narrator.show("the rolled back ones had not paid yet when their process died")
    if not decisions["COMMIT"]:
        raise DeadlineExceeded("no lost end was committed by a check")


def outage(environment: DemoEnvironment, narrator: Narrator) -> None:
    """Act: a whole producer group is down for a while; a missing answer decides nothing."""
    narrator.act(
        "The branch is down",
        f"{BRANCH_PURCHASES} purchases at a second account service; then its processes are killed.",
    )
    for number in range(BRANCH_PURCHASES):
        _buy_without_end(environment, f"branch-{number}")
    environment.branch.kill()
    wait_until(
        "a check finds the branch unreachable", lambda: _was_unreachable(environment), HEAL_SECONDS
    )
    message = environment.outbox.message_of(LAST_OF_BRANCH, BRANCH_GROUP)
    narrator.show(
        f"check without an answer: {message['last_check']['outcome']}, state {message['state']}, "
        f"checks counted {message['check_count']}"
    )
    environment.branch.start(1)
    wait_until(
        "the branch answers again", lambda: _is_decided(environment, BRANCH_GROUP), HEAL_SECONDS
    )
    parked = len(environment.outbox.messages(state="PARKED", producer_group=BRANCH_GROUP))
    narrator.show(f"the branch is back: all {BRANCH_PURCHASES} decided, {parked} parked")


def park(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: messages stay undecided until they are parked; then a reviewer decides."""
    narrator.act(
        "Undecided purchases",
        f"{plan.reviews} purchases wait for a reviewer: every check is answered UNKNOWN until "
        f"no check is left.",
    )
    with narrator.progress("parked", plan.reviews) as show:

        def all_parked() -> bool:
            parked = len(environment.outbox.messages(state="PARKED", producer_group=MAIN_GROUP))
            show(parked, "")
            return parked >= plan.reviews

        wait_until("the undecided are parked", all_parked, PARK_SECONDS)
    outcomes = Counter(
        _review(environment, f"review-{number}", approved=number % 2 == 0)
        for number in range(plan.reviews)
    )
    narrator.show(
        f"nothing was guessed; the reviewer's late decision is valid: {_counts(outcomes)}"
    )


def contradict(environment: DemoEnvironment, narrator: Narrator) -> None:
    """Act: a contradicting end comes too late."""
    narrator.act("A contradiction", "A client sends ROLLBACK for a message that was committed.")
    message = next(m for m in _decided_by_check(environment) if m["decision"] == "COMMIT")
    dev = environment.dev
    with TransactionProducer(dev.api_url, MAIN_GROUP, api_key=dev.api_key) as producer:
        try:
            producer.end(message["message_id"], LocalTransactionState.ROLLBACK)
        except AlreadyEnded as error:
            narrator.show(
                f"{error.status} {error.code}: {error.winning_decision} is final, "
                f"decided by {error.decided_by}"
            )
            return
    raise DeadlineExceeded("a contradicting end was not refused")


def settle(environment: DemoEnvironment, narrator: Narrator) -> None:
    """Act: wait until every commit is a record, and every record has its points."""
    narrator.act("Publication", "Commits become records, records become points.")
    payments = sum(count(url, "payment") for url in environment.account_urls)
    with narrator.progress("granted", payments) as show:

        def settled() -> bool:
            granted = count(environment.member_url, "point_grant")
            open_messages = [
                m for s in ("PREPARED", "COMMITTED") for m in environment.outbox.messages(state=s)
            ]
            show(granted, f"{len(open_messages)} messages open")
            return granted >= payments and not open_messages

        wait_until("every payment is granted", settled, SETTLE_SECONDS)


def _decided_by_check(environment: DemoEnvironment) -> list[dict[str, Any]]:
    return environment.outbox.messages(producer_group=MAIN_GROUP, decided_by="check")


def _is_decided(environment: DemoEnvironment, group: str) -> bool:
    return not environment.outbox.messages(state="PREPARED", producer_group=group)


def _buy_without_end(environment: DemoEnvironment, purchase_id: str) -> None:
    body = {"purchase_id": purchase_id, "member": "member-00", "amount": PRICE}
    headers = {HEADER: DemoSwitch.LOSE_THE_END.value}
    url = f"{environment.branch.service.url}/purchases"
    httpx2.post(url, json=body, headers=headers, trust_env=False).raise_for_status()


def _was_unreachable(environment: DemoEnvironment) -> bool:
    last = environment.outbox.message_of(LAST_OF_BRANCH, BRANCH_GROUP)["last_check"]
    return last is not None and last["outcome"] == "unreachable"


def _review(environment: DemoEnvironment, purchase_id: str, *, approved: bool) -> str:
    url = f"{environment.main.service.url}/purchases/{purchase_id}/review"
    answer = httpx2.post(url, json={"approved": approved}, trust_env=False, timeout=15.0)
    answer.raise_for_status()
    return str(answer.json()["outcome"])


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
