"""Acceptance: purchases whose services are killed at every step give their points exactly once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from sqlalchemy import create_engine

from devservers.child import Child, Command
from examples.account_service.purchases import TOPIC
from examples.account_service.tables import create_tables
from examples.demo.ledger import count, read_books
from examples.demo.outbox import GroupSettings, Outbox
from examples.demo.services import AccountService, Processes, reserved_port
from examples.demo.shoppers import PRICE, RICH_MEMBERS, Basket, Shoppers
from outbox.settings.environment import process_environment
from outbox_client.sqlalchemy import SqlAlchemyBarrier
from tests.e2e.acceptance.fixtures_dying_services import FOLDER, STEPS
from tests.e2e.fixtures_service import Service, outbox_dev
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

PURCHASES, DEATHS_OF_A_STEP, PROCESSES = 200, 1, 3
MEMBER_DEATHS = 2
GROUP = "account-service"
PROGRAM = [sys.executable, "-m", "tests.e2e.acceptance.fixtures_dying_services"]


class DyingAccounts(AccountService):
    """The account service, of which each process may die."""

    def command(self, number: int) -> Command:
        made = super().command(number)
        arguments = [*PROGRAM, "account", *made.arguments[4:]]
        return replace(made, arguments=arguments, environment=environment(self.logs, made))


def environment(folder: Path, command: Command) -> dict[str, str]:
    return {**(command.environment or {}), FOLDER: str(folder), "PYTHONPATH": str(PROJECT)}


@dataclass(slots=True)
class Shop:
    """The services of one test and their databases."""

    accounts: Processes
    member: Child
    member_url: str
    outbox: Outbox
    member_deaths: int = 0

    def revive(self, *_: object) -> None:
        """Replace what has died."""
        self.accounts.revive()
        if self.member.exit_code() is not None:
            self.member_deaths += 1
            self.member = Child(self.member.command)

    def settled(self) -> bool:
        """Return whether each payment has its points, no message is open and all have died."""
        self.revive()
        paid = count(self.accounts.service.database_url, "payment")
        is_open = [
            self.outbox.messages(state=state, producer_group=GROUP)
            for state in ("PREPARED", "COMMITTED")
        ]
        granted = count(self.member_url, "point_grant") == paid
        return granted and not any(is_open) and self.member_deaths == MEMBER_DEATHS


@contextmanager
def shop(service: Service, folder: Path) -> Iterator[Shop]:
    """Start the services on databases of their own."""
    facts = service.facts()
    with ExitStack() as opened:
        outbox = opened.enter_context(Outbox(facts["api_url"], None))
        account_url = new_database(facts["database_url"], "account")
        member_url = new_database(facts["database_url"], "member")
        admin = AdminClient({"bootstrap.servers": facts["kafka_bootstrap_servers"], "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(timeout=60)
        engine = create_engine(account_url)
        create_tables(engine, dict.fromkeys(RICH_MEMBERS, PURCHASES * PRICE))
        SqlAlchemyBarrier().create_table(engine)
        engine.dispose()
        holder, port = reserved_port()
        opened.enter_context(holder)
        settings = GroupSettings(
            check_url=f"http://127.0.0.1:{port}/outbox/check",
            transaction_timeout_seconds=2,
            check_interval_seconds=1,
            check_max=15,
        )
        accounts = Processes(
            DyingAccounts(
                name="account",
                producer_group=GROUP,
                port=port,
                outbox_url=facts["api_url"],
                database_url=account_url,
                check_secret=outbox.register_group(GROUP, settings),
                api_key=None,
                logs=folder,
            )
        )
        opened.callback(accounts.stop)
        accounts.start(PROCESSES)
        member = member_service(facts["kafka_bootstrap_servers"], member_url, folder)
        made = Shop(accounts, member, member_url, outbox)
        opened.callback(lambda: made.member.stop())
        yield made


def member_service(servers: str, database_url: str, folder: Path) -> Child:
    arguments = [*PROGRAM, "member", "--topic", TOPIC, "--bootstrap-servers", servers]
    command = Command(
        name="member",
        arguments=arguments,
        log=folder / "member.log",
        environment={**process_environment(), "MEMBER_DATABASE_URL": database_url},
    )
    return Child(replace(command, environment=environment(folder, command)))


def new_database(server_url: str, name: str) -> str:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def baskets() -> list[Basket]:
    """Return the purchases; some kill their process, spread over all of them."""
    deadly = [f"die-{step}-{n}" for n in range(DEATHS_OF_A_STEP) for step in STEPS]
    usual = [f"p{n}" for n in range(PURCHASES - len(deadly))]
    for place, name in enumerate(deadly, 1):
        usual.insert(place * PURCHASES // (len(deadly) + 1), name)
    return [Basket(name, RICH_MEMBERS[n % len(RICH_MEMBERS)]) for n, name in enumerate(usual)]


def test_a24_purchases_survive_deaths_of_both_services_at_every_step(
    tmp_path: Path,
) -> None:
    """A buyer whose purchase dies repeats it; the message may be decided by a check before."""
    with outbox_dev(tmp_path / "data") as service, shop(service, tmp_path) as made:
        bought = Shoppers(made.accounts.service.url).buy_all(baskets(), made.revive)
        wait_for(made.settled, 120)
        books = read_books(
            [made.accounts.service.database_url],
            made.member_url,
            service.facts()["kafka_bootstrap_servers"],
            TOPIC,
        )
    assert made.accounts.deaths == len(STEPS) * DEATHS_OF_A_STEP
    assert bought.total() == PURCHASES
    assert books.payments.total() == bought["paid"]
    assert (books.equal, books.differences()) == (True, [])
