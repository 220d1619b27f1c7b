"""The environment: `outbox dev` on empty data, with the services' databases, topic and groups."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from urllib.parse import urlsplit

import psycopg
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from sqlalchemy import create_engine

from cli.invocation.dev_state import DevState, running_state
from cli.service.programs import script
from devservers.child import Child, Command
from examples.account_service.purchases import TOPIC
from examples.account_service.tables import create_tables
from examples.demo.outbox import GroupSettings, Outbox
from examples.demo.services import AccountService, Processes, reserved_port, start_member_service
from examples.demo.shoppers import POOR_MEMBER, PRICE_UNDER_REVIEW, RICH_MEMBERS
from outbox_client.sqlalchemy import SqlAlchemyBarrier

PARTITIONS = 3
START_SECONDS = 180.0
TOPIC_SECONDS = 30.0

MAIN_GROUP = "account-service"
BRANCH_GROUP = "branch-service"
MAIN_SCHEDULE = (2, 1, 3)  # transaction timeout and check interval in seconds, check max
BRANCH_SCHEDULE = (4, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoEnvironment:
    """The servers and services that the acts use."""

    dev: DevState
    outbox: Outbox
    main: Processes
    branch: Processes
    member_url: str

    @property
    def account_urls(self) -> list[str]:
        """The databases with payments."""
        return [self.main.service.database_url, self.branch.service.database_url]


@contextmanager
def outbox_dev(*, keep: bool) -> Iterator[tuple[DevState, Path]]:
    """Run `outbox dev` in a temporary folder; yield its addresses and the folder.

    ``keep`` leaves data and logs there.
    """
    place = Path(tempfile.mkdtemp(prefix="outbox-demo-"))
    place.chmod(0o711)  # PostgreSQL runs as another user when this one is root
    data_dir = place / "data"
    command = Command(
        name="outbox dev",
        arguments=[script("outbox"), "dev", "--fresh", "--data-dir", str(data_dir)],
        log=place / "outbox-dev.log",
        orphan_signal=SIGTERM,
        stop_seconds=30.0,
    )
    child = Child(command)
    try:
        child.wait_until(lambda: running_state(data_dir) is not None, START_SECONDS)
        state = running_state(data_dir)
        assert state is not None
        yield state, place
    finally:
        child.stop()
        if not keep:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def demo_environment(
    dev: DevState, logs: Path, account_processes: int
) -> Iterator[DemoEnvironment]:
    """Create databases, topic, groups and processes; stop the processes at the end."""
    with ExitStack() as opened:
        outbox = opened.enter_context(Outbox(dev.api_url, dev.api_key))
        _create_topic(dev.kafka_bootstrap_servers)
        main, branch = (
            _account(opened, dev, outbox, logs, *service)
            for service in (
                ("account", MAIN_GROUP, MAIN_SCHEDULE),
                ("branch", BRANCH_GROUP, BRANCH_SCHEDULE),
            )
        )
        member_url = _create_database(dev.database_url, "member")
        bootstrap = dev.kafka_bootstrap_servers
        member = start_member_service(bootstrap, TOPIC, member_url, logs)
        opened.callback(member.stop)
        main.start(account_processes)
        branch.start(1)
        yield DemoEnvironment(
            dev=dev, outbox=outbox, main=main, branch=branch, member_url=member_url
        )


def _account(
    opened: ExitStack,
    dev: DevState,
    outbox: Outbox,
    logs: Path,
    name: str,
    group: str,
    schedule: tuple[int, int, int],
) -> Processes:
    database_url = _create_database(dev.database_url, name)
    _open_accounts(database_url)
    holder, port = reserved_port()
    opened.enter_context(holder)
    timeout, interval, check_max = schedule
    settings = GroupSettings(
        check_url=f"http://127.0.0.1:{port}/outbox/check",
        transaction_timeout_seconds=timeout,
        check_interval_seconds=interval,
        check_max=check_max,
    )
    service = AccountService(
        name=name,
        producer_group=group,
        port=port,
        outbox_url=dev.api_url,
        database_url=database_url,
        check_secret=outbox.register_group(group, settings),
        api_key=dev.api_key,
        logs=logs,
    )
    processes = Processes(service)
    opened.callback(processes.stop)
    return processes


def _open_accounts(database_url: str) -> None:
    balances = dict.fromkeys(RICH_MEMBERS, 100 * PRICE_UNDER_REVIEW) | {POOR_MEMBER: 0}
    engine = create_engine(database_url)
    create_tables(engine, balances)
    SqlAlchemyBarrier().create_table(engine)
    engine.dispose()


def _create_database(server_url: str, name: str) -> str:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def _create_topic(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    created[TOPIC].result(TOPIC_SECONDS)
