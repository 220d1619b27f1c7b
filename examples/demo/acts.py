"""The acts, in the order they are played."""

from collections import Counter
from typing import Any

import httpx2

from examples.account_service.demo_switches import HEADER, DemoSwitch
from examples.demo.ledger import count
from examples.demo.narrator import Narrator
from examples.demo.shoppers import PRICE, Plan, Shoppers
from examples.demo.stage import BRANCH_GROUP, MAIN_GROUP, Stage
from examples.demo.waiting import DidNotHappen, wait_until
from outbox_client import AlreadyEnded, LocalTransactionState, TransactionProducer

BRANCH_PURCHASES = 3
HEAL_SECONDS = 180.0
PARK_SECONDS = 180.0
SETTLE_SECONDS = 90.0


def buy(stage: Stage, narrator: Narrator, plan: Plan) -> None:
    """Act: many purchases at once, while account processes are killed."""
    narrator.act(
        f"{plan.purchases} purchases of {PRICE}",
        f"3 account processes share one port. {plan.deaths} of them will be killed right after "
        f"their own commit, before the end.",
    )
    shoppers = Shoppers(stage.main.service.url)
    with narrator.progress("bought", plan.purchases) as show:

        def watch(tally: Counter[str]) -> None:
            stage.main.revive()
            show(tally.total(), _ways(tally))

        tally = shoppers.buy_all(plan.baskets(), watch)
    narrator.say(f"buyers were told: {_ways(tally)}")


def heal(stage: Stage, narrator: Narrator, plan: Plan) -> None:
    """Act: the check-back finds out what the dead could not tell."""
    narrator.act(
        "Paid, but never told",
        "Payments committed whose end was never sent: the outbox asks the account service, which "
        "answers from its barrier.",
    )
    healed = plan.deaths + plan.lost_ends
    with narrator.progress("decided by a check", healed) as show:

        def all_asked() -> bool:
            stage.main.revive()
            waiting = len(stage.outbox.messages(state="PREPARED", producer_group=MAIN_GROUP))
            show(max(0, healed - max(0, waiting - plan.reviews)), "")
            return waiting <= plan.reviews

        wait_until("the check-back heals the lost ends", all_asked, HEAL_SECONDS)
    decisions = Counter(message["decision"] for message in _healed(stage))
    narrator.say(f"account processes killed and replaced: {stage.main.deaths}")
    narrator.say(f"decided by a check: {_ways(decisions)}")
    if decisions["ROLLBACK"]:
        narrator.say("those rolled back had not paid yet when their process died")
    if not decisions["COMMIT"]:
        raise DidNotHappen("no lost end was committed by a check")


def outage(stage: Stage, narrator: Narrator) -> None:
    """Act: a whole producer group is away for a while; silence decides nothing."""
    narrator.act(
        "The branch goes dark",
        f"{BRANCH_PURCHASES} purchases at a second account service; then all of it is killed.",
    )
    for number in range(BRANCH_PURCHASES):
        _buy_without_end(stage, f"branch-{number}")
    stage.branch.kill()
    wait_until("a check meets the dead branch", lambda: _was_unreachable(stage), HEAL_SECONDS)
    message = stage.outbox.message_of("purchase-branch-0", BRANCH_GROUP)
    narrator.say(
        f"asked, nobody there: {message['last_check']['outcome']}, state {message['state']}, "
        f"checks spent {message['check_count']}"
    )
    stage.branch.start(1)
    wait_until("the branch answers again", lambda: _is_settled(stage, BRANCH_GROUP), HEAL_SECONDS)
    parked = len(stage.outbox.messages(state="PARKED", producer_group=BRANCH_GROUP))
    narrator.say(f"the branch is back: all {BRANCH_PURCHASES} settled, {parked} parked")


def park(stage: Stage, narrator: Narrator, plan: Plan) -> None:
    """Act: undecided until parked; then a reviewer decides after all."""
    narrator.act(
        "Nobody knows yet",
        f"{plan.reviews} purchases wait for a reviewer: every check is answered UNKNOWN until "
        f"the checks are used up.",
    )
    with narrator.progress("parked", plan.reviews) as show:

        def all_parked() -> bool:
            parked = len(stage.outbox.messages(state="PARKED", producer_group=MAIN_GROUP))
            show(parked, "")
            return parked >= plan.reviews

        wait_until("the undecided are parked", all_parked, PARK_SECONDS)
    outcomes = Counter(
        _review(stage, f"review-{number}", approved=number % 2 == 0)
        for number in range(plan.reviews)
    )
    narrator.say(
        f"nothing was guessed. The reviewer decides late, and it counts: {_ways(outcomes)}"
    )


def contradict(stage: Stage, narrator: Narrator) -> None:
    """Act: a second opinion comes too late."""
    narrator.act("A contradiction", "Somebody sends ROLLBACK for a message that was committed.")
    message = next(m for m in _healed(stage) if m["decision"] == "COMMIT")
    dev = stage.dev
    with TransactionProducer(dev.api_url, MAIN_GROUP, api_key=dev.api_key) as producer:
        try:
            producer.end(message["message_id"], LocalTransactionState.ROLLBACK)
        except AlreadyEnded as error:
            narrator.say(
                f"{error.status} {error.code}: {error.winning_decision} stands, "
                f"decided by {error.decided_by}"
            )
            return
    raise DidNotHappen("a contradicting end was not refused")


def settle(stage: Stage, narrator: Narrator) -> None:
    """Act: wait until every decision has become a record, and every record points."""
    narrator.act("The dust settles", "Commits become records, records become points.")
    payments = sum(count(url, "payment") for url in stage.account_urls)
    with narrator.progress("granted", payments) as show:

        def settled() -> bool:
            granted = count(stage.member_url, "point_grant")
            open_messages = [
                m for s in ("PREPARED", "COMMITTED") for m in stage.outbox.messages(state=s)
            ]
            show(granted, f"{len(open_messages)} messages open")
            return granted >= payments and not open_messages

        wait_until("every payment is granted", settled, SETTLE_SECONDS)


def _healed(stage: Stage) -> list[dict[str, Any]]:
    return stage.outbox.messages(producer_group=MAIN_GROUP, decided_by="check")


def _is_settled(stage: Stage, group: str) -> bool:
    return not stage.outbox.messages(state="PREPARED", producer_group=group)


def _buy_without_end(stage: Stage, purchase_id: str) -> None:
    body = {"purchase_id": purchase_id, "member": "member-00", "amount": PRICE}
    headers = {HEADER: DemoSwitch.LOSE_THE_END.value}
    url = f"{stage.branch.service.url}/purchases"
    httpx2.post(url, json=body, headers=headers, trust_env=False).raise_for_status()


def _was_unreachable(stage: Stage) -> bool:
    last = stage.outbox.message_of("purchase-branch-0", BRANCH_GROUP)["last_check"]
    return last is not None and last["outcome"] == "unreachable"


def _review(stage: Stage, purchase_id: str, *, approved: bool) -> str:
    url = f"{stage.main.service.url}/purchases/{purchase_id}/review"
    answer = httpx2.post(url, json={"approved": approved}, trust_env=False, timeout=15.0)
    answer.raise_for_status()
    return str(answer.json()["outcome"])


def _ways(tally: Counter[str]) -> str:
    return ", ".join(f"{times} {way}" for way, times in tally.most_common())
