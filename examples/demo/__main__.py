"""``python -m examples.demo``: plays the acts, audits the books, lets Spark judge.

Exits 0 only if payments = records = points granted and the reconciliation is clean; 1 if not, or
if something did not happen in time; 130 on Ctrl-C. No process outlives it.
"""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

import httpx2

from cli.exit_codes import CommandFailed
from devservers.errors import EmbeddedError
from examples.account_service.purchases import TOPIC
from examples.demo import acts
from examples.demo.ledger import Books, read_books
from examples.demo.narrator import Narrator
from examples.demo.reconciliation import Judgement, ReconcileFailed, reconcile
from examples.demo.shoppers import Plan
from examples.demo.stage import Stage, outbox_dev, set_stage
from examples.demo.waiting import DidNotHappen
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
    except (DidNotHappen, ReconcileFailed, EmbeddedError, CommandFailed, OutboxError) as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(1)
    except (httpx2.HTTPError, TimeoutError) as error:
        said = str(error).partition("\n")[0]
        print(f"demo: {type(error).__name__}: {said}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0 if good else 1)


def plan_of(purchases: int) -> Plan:
    """Return how many purchases fail in which way."""
    return Plan(purchases=purchases, deaths=6, lost_ends=max(1, purchases // 50), reviews=5)


def play(narrator: Narrator, plan: Plan, reports: Path, *, keep: bool = False) -> bool:
    """Play everything; return whether all was as it must be."""
    story = "Real PostgreSQL, real Kafka, the outbox, an account service and a member service."
    narrator.act("The stage", story)
    with outbox_dev(keep=keep) as (dev, place):
        if keep:
            narrator.say(f"data and logs stay in {place}")
        narrator.say(f"outbox dev is ready: API {dev.api_url}, Kafka {dev.kafka_bootstrap_servers}")
        with set_stage(dev, place, ACCOUNT_PROCESSES) as stage:
            _play_acts(stage, narrator, plan)
            books = _audit(stage, narrator)
        judgement = _judge(stage, narrator, reports, place / "reconcile.log")
    return _conclude(narrator, books, judgement)


def _play_acts(stage: Stage, narrator: Narrator, plan: Plan) -> None:
    acts.buy(stage, narrator, plan)
    acts.heal(stage, narrator, plan)
    acts.outage(stage, narrator)
    acts.park(stage, narrator, plan)
    acts.contradict(stage, narrator)
    acts.settle(stage, narrator)


def _audit(stage: Stage, narrator: Narrator) -> Books:
    narrator.act("The books", "Payments, records and grants, each read from where it lives.")
    bootstrap = stage.dev.kafka_bootstrap_servers
    books = read_books(stage.account_urls, stage.member_url, bootstrap, TOPIC)
    numbers = (books.payments.total(), books.records.total(), books.grants.total())
    narrator.say("payments {} = records {} = grants {}".format(*numbers))
    narrator.say(f"taken from balances {books.money}, points granted {books.points}")
    for difference in books.differences():
        narrator.say(f"differs: {difference}")
    return books


def _judge(stage: Stage, narrator: Narrator, reports: Path, log: Path) -> Judgement:
    narrator.act("The judge", "Spark reads PostgreSQL and Kafka and compares them (30 s or so).")
    judgement = reconcile(stage.dev, reports, TOPIC, log)
    narrator.say(f"verdict: {judgement.verdict}")
    narrator.say(judgement.sentence)
    totals = ", ".join(f"{kind} {number}" for kind, number in judgement.totals.items())
    narrator.say(f"totals: {totals or 'no discrepancy'}")
    narrator.say(f"report: {judgement.html}")
    return judgement


def _conclude(narrator: Narrator, books: Books, judgement: Judgement) -> bool:
    good = books.equal and judgement.clean
    narrator.verdict(
        "Every payment has its points, exactly once." if good else "The books do not agree.",
        good=good,
    )
    return good


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="The main job on real parts.")
    parser.add_argument("--purchases", type=int, default=1000, metavar="N", help="at least 100")
    parser.add_argument("--report", type=Path, default=Path("reports"), metavar="DIR")
    parser.add_argument("--keep", action="store_true", help="keep data and logs")
    arguments = parser.parse_args()
    if arguments.purchases < 100:
        parser.error("--purchases is at least 100")
    return arguments


if __name__ == "__main__":
    main()
