"""The account service as processes: one dies between commit and end, another answers its check."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import create_engine

from examples.account_service.demo_switches import EXIT_CODE, DemoSwitch
from examples.account_service.tables import create_tables
from examples.demo.poller import wait_until
from examples.demo.services import (
    START_SECONDS,
    AccountService,
    Processes,
    is_answering,
    reserved_port,
)
from examples.demo.shoppers import Basket, Shoppers
from outbox_client.sqlalchemy import SqlAlchemyBarrier
from tests.fixtures_plain_http import NO_TLS
from tests.integration.client.fixtures_contract_server import ContractService
from tests.unit.outbox_client.fixtures_checks import (
    GROUP,
    SECRET,
    make_check,
    signed_headers,
    single,
)

pytestmark = pytest.mark.postgres

MEMBER = "member-rich"


@pytest.fixture
def processes(local_database: str, service_url: str, tmp_path: Path) -> Iterator[Processes]:
    engine = create_engine(local_database.replace("postgresql:", "postgresql+psycopg:"))
    create_tables(engine, {MEMBER: 10_000})
    SqlAlchemyBarrier().create_table(engine)
    engine.dispose()
    holder, port = reserved_port()
    with holder:
        service = AccountService(
            name="account",
            producer_group=GROUP,
            port=port,
            outbox_url=service_url,
            database_url=local_database,
            check_secret=SECRET,
            api_key="obx_key",
            logs=tmp_path,
        )
        processes = Processes(service)
        processes.start(2)
        yield processes
        processes.stop()


def ask(url: str, check: dict[str, object]) -> str:
    body = single(check)
    headers = signed_headers(body)
    answer = httpx2.post(
        f"{url}/outbox/check", content=body, headers=headers, trust_env=False, verify=NO_TLS
    )
    return str(json.loads(answer.content)["decision"])


def has_died(processes: Processes) -> bool:
    return any(child.exit_code() == EXIT_CODE for child in processes.children)


def test_another_process_answers_for_the_one_that_died_between_commit_and_end(
    service: ContractService, processes: Processes
) -> None:
    url = processes.service.url
    basket = Basket("p1", MEMBER, fail=DemoSwitch.DIE_AFTER_COMMIT)
    shoppers = Shoppers(url)
    assert shoppers.buy_all([basket], lambda tally: None) == {"killed": 1}
    wait_until("the process is dead", lambda: has_died(processes), 10.0)
    wait_until("the other one listens", lambda: is_answering(url), START_SECONDS)
    half = next(iter(service.halves.values()))
    assert half.decision is None
    check = make_check(half.message_id, transaction_id=half.content["transaction_id"])
    assert ask(url, check) == "COMMIT"
    assert processes.revive() == processes.deaths == 1
