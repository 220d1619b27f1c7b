"""The SQL, the shell line and vector of docs/barrier.md and docs/check-endpoint.md are correct."""

import json
import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import create_engine, text

from tests.fixtures_paths import PROJECT
from tests.integration.client.fixtures_contract_server import ContractService
from tests.integration.client.fixtures_prepared import make_check
from tests.unit.outbox.http_checks.fixtures_schemas import validator

ENDPOINT, BARRIER = (
    (PROJECT / "docs" / f"{page}.md").read_text("utf-8") for page in ("check-endpoint", "barrier")
)
SQL = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", BARRIER, re.DOTALL))
(SHELL,) = re.findall(r"```sh\n(key=.*?)```", ENDPOINT, re.DOTALL)
(HTTP,) = re.findall(r"```http\n(.*?)```", ENDPOINT, re.DOTALL)
JSON = re.findall(r"```json\n(.*?)```", ENDPOINT, re.DOTALL)
NAMES = "secret|id|timestamp|body|length|key|signed|hmac|signature"
VECTOR = dict(re.findall(rf"^({NAMES}) +(.*)$", ENDPOINT, re.MULTILINE))


def test_the_examples_of_request_and_answer_fit_their_schemas() -> None:
    asked, verdict, verdicts = (json.loads(text) for text in JSON)
    validator("check-request").validate(asked)
    for answer in (verdict, verdicts):
        validator("check-answer").validate(answer)
    ids = [check["message_id"] for check in asked["data"]["checks"]]
    assert [each["message_id"] for each in verdicts["verdicts"]] == ids
    assert verdict["message_id"] == json.loads(VECTOR["body"])["data"]["message_id"]


def test_the_producer_of_the_clients_page_sends_and_answers(
    service: ContractService, service_url: str, tmp_path: Path
) -> None:
    page = (PROJECT / "docs" / "clients.md").read_text("utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {
        "outbox_url": service_url,
        "check_secret": VECTOR["secret"],
        "engine": create_engine(f"sqlite:///{tmp_path / 'account.db'}"),
        "app": FastAPI(),
        "take_100_from_the_balance": lambda db, member: db.execute(text("SELECT 1")),
    }
    exec(example, names)
    with names["producer"]:
        sent = names["buy"]("p-1", "m-1")
        (half,) = service.halves.values()
        assert (half.decision, sent.transaction_id) == ("COMMIT", "p-1")
        assert names["Payments"]().check_local_transaction(make_check()) == "ROLLBACK"


def test_the_page_of_the_client_itself_sends_and_answers(
    service: ContractService, service_url: str, tmp_path: Path
) -> None:
    page = (PROJECT / "outbox_client" / "README.md").read_text("utf-8")
    sends, answers = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {
        "check_secret": VECTOR["secret"],
        "engine": create_engine(f"sqlite:///{tmp_path / 'account.db'}"),
        "app": FastAPI(),
        "take_100_from_the_balance": text("SELECT 1"),
    }
    exec(sends.replace("http://127.0.0.1:8080", service_url), names)
    exec(answers, names)
    (half,) = service.halves.values()
    assert half.decision == "COMMIT"
    assert names["Payments"]().check_local_transaction(make_check()) == "ROLLBACK"
