"""The acts, in their order."""

from collections import Counter

import httpx2

from examples.demo.environment import ACCOUNT_PROCESSES, DemoEnvironment
from examples.demo.ledger import count
from examples.demo.narrator import Narrator
from examples.demo.poller import DeadlineExceeded, wait_until
from examples.demo.shoppers import PRICE, Plan, Shoppers

HEAL_SECONDS = 180.0
PARK_SECONDS = 180.0
SETTLE_SECONDS = 90.0


def buy(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: many purchases at once, while account processes are killed."""
    narrator.act(
        f"{plan.purchases} purchases of {PRICE}",
        f"{ACCOUNT_PROCESSES} account processes share one port. {plan.deaths} of them are killed "
        f"right after their own commit, before the end.",
    )
    shoppers = Shoppers(environment.accounts.service.url)
    show = narrator.progress("bought", plan.purchases)

    def watch(outcomes: Counter[str]) -> None:
        environment.accounts.revive()
        show(outcomes.total())

    outcomes = shoppers.buy_all(plan.baskets(), watch)
    narrator.show(f"results for the buyers: {_counts(outcomes)}")


def recover(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: the check-back finds the result that the killed processes could not send."""
    narrator.act(
        "Paid, but the end was never sent",
        "The outbox checks back with the account service, which answers from its barrier.",
    )
    show = narrator.progress("undecided", plan.deaths + plan.lost_ends + plan.reviews)

    def all_decided() -> bool:
        environment.accounts.revive()
        waiting = len(environment.outbox.messages(state="PREPARED"))
        show(waiting)
        return waiting <= plan.reviews

    wait_until("the check-back decides the lost ends", all_decided, HEAL_SECONDS)
    decided = environment.outbox.messages(decided_by="check")
    decisions = Counter(str(message["decision"]) for message in decided)
    narrator.show(f"account processes killed and replaced: {environment.accounts.deaths}")
    narrator.show(f"decided by a check: {_counts(decisions)}")
    refused = environment.outbox.messages(state="ROLLED_BACK", decided_by="producer")
    narrator.show(f"rolled back by the service, because the buyer had no money: {len(refused)}")
    if not decisions["COMMIT"]:
        raise DeadlineExceeded("no lost end was committed by a check")


def park(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    """Act: messages stay undecided until they are parked; then a reviewer decides."""
    narrator.act(
        "Undecided purchases",
        f"{plan.reviews} purchases wait for a reviewer: every check is answered UNKNOWN until "
        f"no check is left.",
    )
    show = narrator.progress("parked", plan.reviews)

    def all_parked() -> bool:
        parked = len(environment.outbox.messages(state="PARKED"))
        show(parked)
        return parked >= plan.reviews

    wait_until("the undecided are parked", all_parked, PARK_SECONDS)
    outcomes = Counter(
        _review(environment, f"review-{number}", approved=number % 2 == 0)
        for number in range(plan.reviews)
    )
    narrator.show(f"{plan.reviews} parked, then decided by the reviewer: {_counts(outcomes)}")


def settle(environment: DemoEnvironment, narrator: Narrator) -> None:
    """Act: wait until every commit is a record, and every record has its points."""
    narrator.act("Publication", "Commits become records, records become points.")
    payments = count(environment.accounts.service.database_url, "payment")
    show = narrator.progress("granted", payments)

    def settled() -> bool:
        granted = count(environment.member_url, "point_grant")
        show(granted)
        open_states = ("PREPARED", "COMMITTED")
        is_open = any(environment.outbox.messages(state=state) for state in open_states)
        return granted >= payments and not is_open

    wait_until("every payment is granted", settled, SETTLE_SECONDS)


def _review(environment: DemoEnvironment, purchase_id: str, *, approved: bool) -> str:
    url = f"{environment.accounts.service.url}/purchases/{purchase_id}/review"
    answer = httpx2.post(url, json={"approved": approved}, trust_env=False, timeout=15.0)
    answer.raise_for_status()
    return str(answer.json()["outcome"])


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
