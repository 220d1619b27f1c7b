"""``python -m examples.demo``: plays the acts, compares the books, runs the reconciliation.

Exits 0 only if payments = records = points granted and the reconciliation is clean; 1 if not, or
after a timeout; 130 on Ctrl-C. It leaves no process running.
"""

import argparse
import signal
import sys
from pathlib import Path

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
from outbox.settings.environment import drop_variables
from outbox_client import OutboxError

INTERRUPTED = 130
KNOWN = (
    *(DeadlineExceeded, ReconcileFailed, EmbeddedError, CommandFailed, OutboxError),
    *(httpx2.HTTPError, TimeoutError),
)


def main() -> None:
    """Play the demo with this process's arguments and exit."""
    arguments = _arguments()
    drop_variables()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    purchases = arguments.purchases
    plan = Plan(purchases=purchases, deaths=6, lost_ends=max(1, purchases // 50), reviews=5)
    try:
        good = play(Narrator(), plan, arguments.report, keep=arguments.keep)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except KNOWN as error:
        print(f"demo: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0 if good else 1)


def play(narrator: Narrator, plan: Plan, reports: Path, *, keep: bool = False) -> bool:
    """Play everything; return True if every result is as expected."""
    text = "Real PostgreSQL, real Kafka, the outbox, an account service and a member service."
    narrator.act("The environment", text)
    with outbox_dev(keep=keep) as (dev, place):
        narrator.show(f"API {dev.api_url}, Kafka {dev.kafka_bootstrap_servers}, files in {place}")
        with demo_environment(dev, place) as environment:
            acts.buy(environment, narrator, plan)
            acts.recover(environment, narrator, plan)
            acts.park(environment, narrator, plan)
            acts.settle(environment, narrator)
            books = _compare_books(environment, narrator)
        result = _reconcile(environment, narrator, reports, place / "reconcile.log")
    good = books.equal and result.clean
    line = "Every payment has its points, exactly once." if good else "The books do not agree."
    narrator.act("The end", line)
    return good


def _compare_books(environment: DemoEnvironment, narrator: Narrator) -> Books:
    narrator.act("The books", "Payments, records and grants, each read from its own store.")
    accounts, servers = environment.accounts.service, environment.dev.kafka_bootstrap_servers
    books = read_books([accounts.database_url], environment.member_url, servers, TOPIC)
    numbers = (books.payments.total(), books.records.total(), books.grants.total())
    narrator.show("payments {} = records {} = grants {}".format(*numbers))
    narrator.show(f"taken from balances {books.money}, points granted {books.points}")
    for difference in books.differences():
        narrator.show(f"differs: {difference}")
    return books


def _reconcile(
    environment: DemoEnvironment, narrator: Narrator, reports: Path, log: Path
) -> RunResult:
    narrator.act("The report", "Spark reads PostgreSQL and Kafka and compares them (about 30 s).")
    result = reconcile(environment.dev, reports, log)
    narrator.show(f"verdict: {result.verdict}")
    narrator.show(result.sentence)
    narrator.show(f"report: {result.html}")
    return result


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
