"""The environment: `outbox dev` on empty data, with the account and the member service."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM

from cli.invocation.dev_state import DevState, running_state
from cli.service.programs import script
from devservers.child import Child, Command
from examples.account_service.purchases import TOPIC
from examples.demo.outbox import GroupSettings, Outbox
from examples.demo.preparation import GROUP, prepare_stores
from examples.demo.services import AccountService, Processes, reserved_port, start_member_service
from examples.demo.shoppers import POOR_MEMBER, PRICE_UNDER_REVIEW, RICH_MEMBERS

START_SECONDS = 180.0
ACCOUNT_PROCESSES = 3
BALANCES = dict.fromkeys(RICH_MEMBERS, 100 * PRICE_UNDER_REVIEW) | {POOR_MEMBER: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoEnvironment:
    """The servers and services that the acts use."""

    dev: DevState
    outbox: Outbox
    accounts: Processes
    member_url: str


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
def demo_environment(dev: DevState, logs: Path) -> Iterator[DemoEnvironment]:
    """Prepare the stores and start both services; stop them at the end."""
    servers = dev.kafka_bootstrap_servers
    databases = prepare_stores(dev.database_url, servers, BALANCES)
    holder, port = reserved_port()
    with ExitStack() as opened:
        opened.enter_context(holder)
        outbox = opened.enter_context(Outbox(dev.api_url, dev.api_key))
        checks = GroupSettings(
            check_url=f"http://127.0.0.1:{port}/outbox/check",
            transaction_timeout_seconds=2,
            check_interval_seconds=1,
            check_max=3,
        )
        service = AccountService(
            name="account",
            producer_group=GROUP,
            port=port,
            outbox_url=dev.api_url,
            database_url=databases.account,
            check_secret=outbox.register_group(GROUP, checks),
            api_key=dev.api_key,
            logs=logs,
        )
        accounts = Processes(service)
        opened.callback(accounts.stop)
        accounts.start(ACCOUNT_PROCESSES)
        member = start_member_service(servers, TOPIC, databases.member, logs)
        opened.callback(member.stop)
        yield DemoEnvironment(
            dev=dev, outbox=outbox, accounts=accounts, member_url=databases.member
        )
