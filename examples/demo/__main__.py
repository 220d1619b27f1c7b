"""``python -m examples.demo``: plays the acts, compares the books, runs the reconciliation.

Exits 0 only if payments = records = points granted and the reconciliation is clean; 1 if not, or
after a timeout; 130 on Ctrl-C. It leaves no process running.
"""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

import httpx2

from cli.invocation.exit_codes import CommandFailed
from devservers.errors import EmbeddedError
from examples.account_service.purchases import TOPIC
from examples.demo import acts
from examples.demo.environment import DemoEnvironment, demo_environment, outbox_dev
from examples.demo.ledger import Books, read_books
from examples.demo.narrator import Narrator
from examples.demo.poller import DeadlineExceeded
from examples.demo.reconciliation import ReconcileFailed, RunResult, reconcile
from examples.demo.shoppers import Plan
from outbox_client import OutboxError

ACCOUNT_PROCESSES = 3
INTERRUPTED = 130


def main() -> None:
    """Play the demo with this process's arguments and exit."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    narrator = Narrator()
    try:
        plan = plan_of(arguments.purchases)
        good = play(narrator, plan, arguments.report, keep=arguments.keep)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (DeadlineExceeded, ReconcileFailed, EmbeddedError, CommandFailed, OutboxError) as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(1)
    except (httpx2.HTTPError, TimeoutError) as error:
        first_line = str(error).partition("\n")[0]
        print(f"demo: {type(error).__name__}: {first_line}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0 if good else 1)


def plan_of(purchases: int) -> Plan:
    """Return the numbers of purchases that fail, by way."""
    return Plan(purchases=purchases, deaths=6, lost_ends=max(1, purchases // 50), reviews=5)


def play(narrator: Narrator, plan: Plan, reports: Path, *, keep: bool = False) -> bool:
    """Play everything; return True if every result is as expected."""
    text = "Real PostgreSQL, real Kafka, the outbox, an account service and a member service."
    narrator.act("The environment", text)
    with outbox_dev(keep=keep) as (dev, place):
        if keep:
            narrator.show(f"data and logs stay in {place}")
        narrator.show(
            f"outbox dev is ready: API {dev.api_url}, Kafka {dev.kafka_bootstrap_servers}"
        )
        with demo_environment(dev, place, ACCOUNT_PROCESSES) as environment:
            _play_acts(environment, narrator, plan)
            books = _compare_books(environment, narrator)
        result = _reconcile(environment, narrator, reports, place / "reconcile.log")
    return _conclude(narrator, books, result)


def _play_acts(environment: DemoEnvironment, narrator: Narrator, plan: Plan) -> None:
    acts.buy(environment, narrator, plan)
    acts.recover(environment, narrator, plan)
    acts.outage(environment, narrator)
    acts.park(environment, narrator, plan)
    acts.contradict(environment, narrator)
    acts.settle(environment, narrator)


def _compare_books(environment: DemoEnvironment, narrator: Narrator) -> Books:
    narrator.act("The books", "Payments, records and grants, each read from its own store.")
    bootstrap = environment.dev.kafka_bootstrap_servers
    books = read_books(environment.account_urls, environment.member_url, bootstrap, TOPIC)
    numbers = (books.payments.total(), books.records.total(), books.grants.total())
    narrator.show("payments {} = records {} = grants {}".format(*numbers))
    narrator.show(f"taken from balances {books.money}, points granted {books.points}")
    for difference in books.differences():
        narrator.show(f"differs: {difference}")
    return books


def _reconcile(
    environment: DemoEnvironment, narrator: Narrator, reports: Path, log: Path
) -> RunResult:
    narrator.act(
        "The reconciliation", "Spark reads PostgreSQL and Kafka and compares them (about 30 s)."
    )
    result = reconcile(environment.dev, reports, TOPIC, log)
    narrator.show(f"verdict: {result.verdict}")
    narrator.show(result.sentence)
    totals = ", ".join(f"{kind} {number}" for kind, number in result.totals.items())
    narrator.show(f"totals: {totals or 'no finding'}")
    narrator.show(f"report: {result.html}")
    return result


def _conclude(narrator: Narrator, books: Books, result: RunResult) -> bool:
    good = books.equal and result.clean
    narrator.verdict(
        "Every payment has its points, exactly once." if good else "The books do not agree.",
        good=good,
    )
    return good


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="The main use case on real servers.")
    parser.add_argument("--purchases", type=int, default=1000, metavar="COUNT", help="at least 100")
    parser.add_argument(
        "--report", type=Path, default=Path("reports"), metavar="DIR", help="folder of reports"
    )
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    arguments = parser.parse_args()
    if arguments.purchases < 100:
        parser.error("--purchases is at least 100")
    return arguments


if __name__ == "__main__":
    main()
