"""The plan of the demo has the requested number of purchases and is always the same."""

from collections import Counter

import pytest

from examples.account_service.demo_switches import DemoSwitch, read_switch
from examples.demo.shoppers import POOR_MEMBER, PRICE_UNDER_REVIEW, Plan

PLAN = Plan(purchases=1000, deaths=6, lost_ends=20, reviews=5)


def test_a_plan_has_each_special_purchase_as_often_as_asked() -> None:
    baskets = PLAN.baskets()
    assert Counter(basket.fail for basket in baskets) == {
        DemoSwitch.DIE_AFTER_COMMIT: 6,
        DemoSwitch.LOSE_THE_END: 20,
        None: 974,
    }
    assert sum(basket.amount == PRICE_UNDER_REVIEW for basket in baskets) == 5
    assert sum(basket.member == POOR_MEMBER for basket in baskets) == PLAN.refused == 83


@pytest.mark.parametrize("header", [None, "format-the-disk"])
def test_unknown_switches_are_ignored(header: str | None) -> None:
    assert read_switch(header, enabled=True) is None


def test_switches_are_ignored_outside_of_the_demo() -> None:
    assert read_switch("lose-the-end", enabled=True) is DemoSwitch.LOSE_THE_END
    assert read_switch("lose-the-end", enabled=False) is None
