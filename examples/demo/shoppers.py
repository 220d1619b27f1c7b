"""Shoppers: many concurrent purchases, some of which request a failure of the service."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from random import Random
from threading import Event
from time import monotonic

import httpx2

from examples.account_service.demo_switches import HEADER, DemoSwitch
from examples.demo.poller import DeadlineExceeded

SHOPPERS = 16
PATIENCE_SECONDS = 30.0
RETRY_SECONDS = 0.2
PRICE = 100
PRICE_UNDER_REVIEW = 5_000
RICH_MEMBERS = tuple(f"member-{number:02d}" for number in range(50))
POOR_MEMBER = "member-poor"
DIE, LOSE = DemoSwitch.DIE_AFTER_COMMIT, DemoSwitch.LOSE_THE_END


@dataclass(frozen=True, slots=True)
class Basket:
    """One purchase to make, and the failure to request."""

    purchase_id: str
    member: str
    amount: int = PRICE
    fail: DemoSwitch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The number of purchases, and of those with each special end."""

    purchases: int
    deaths: int
    lost_ends: int
    reviews: int

    @property
    def refused(self) -> int:
        """The number of buyers without money: one in twelve."""
        return self.purchases // 12

    def baskets(self) -> list[Basket]:
        """Return the purchases, special ones mixed into the ordinary ones, always the same."""
        special = [
            *(Basket(f"death-{n}", _member(n), fail=DIE) for n in range(self.deaths)),
            *(Basket(f"lost-{n}", _member(n), fail=LOSE) for n in range(self.lost_ends)),
            *(Basket(f"review-{n}", _member(n), PRICE_UNDER_REVIEW) for n in range(self.reviews)),
            *(Basket(f"refused-{n}", POOR_MEMBER) for n in range(self.refused)),
        ]
        ordinary = (Basket(f"p{n:05d}", _member(n)) for n in range(self.purchases - len(special)))
        baskets = [*special, *ordinary]
        Random(7).shuffle(baskets)
        return baskets


def _member(number: int) -> str:
    return RICH_MEMBERS[number % len(RICH_MEMBERS)]


class Shoppers:
    """Threads that buy; meanwhile the caller's thread keeps the service running."""

    def __init__(self, url: str) -> None:
        limits = httpx2.Limits(max_connections=SHOPPERS, max_keepalive_connections=SHOPPERS)
        self._http = httpx2.Client(base_url=url, trust_env=False, timeout=15.0, limits=limits)
        self._stop = Event()

    def buy_all(
        self, baskets: list[Basket], meanwhile: Callable[[Counter[str]], object]
    ) -> Counter[str]:
        """Buy every basket; return the number of each outcome."""
        outcomes: Counter[str] = Counter()
        threads = ThreadPoolExecutor(SHOPPERS)
        try:
            waiting: set[Future[str]] = {threads.submit(self.buy, basket) for basket in baskets}
            while waiting:
                done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                outcomes.update(future.result() for future in done)
                meanwhile(outcomes)
        finally:
            self._stop.set()
            threads.shutdown(cancel_futures=True)
            self._http.close()
        return outcomes

    def buy(self, basket: Basket) -> str:
        """Buy once; a broken connection is retried with the same purchase id.

        Only the shopper whose purchase kills the process does not retry: the check-back must
        decide that message.
        """
        deadline = monotonic() + PATIENCE_SECONDS
        while monotonic() < deadline and not self._stop.is_set():
            outcome = self._buy_once(basket)
            if outcome is not None:
                return outcome
            self._stop.wait(RETRY_SECONDS)
        raise DeadlineExceeded(f"purchase {basket.purchase_id} got no answer")

    def _buy_once(self, basket: Basket) -> str | None:
        body = {"purchase_id": basket.purchase_id, "member": basket.member, "amount": basket.amount}
        headers = {HEADER: basket.fail.value} if basket.fail else {}
        try:
            answer = self._http.post("/purchases", json=body, headers=headers)
        except httpx2.ConnectError:
            return None
        except httpx2.TransportError:
            return "killed" if basket.fail is DemoSwitch.DIE_AFTER_COMMIT else None
        if answer.status_code == 503:
            return None
        answer.raise_for_status()
        return str(answer.json()["outcome"])
