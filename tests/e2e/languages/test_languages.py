"""The README of each language, typed by a newcomer: an invoice is issued, another one is healed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from devservers.loopback import free_ports
from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import (
    LANGUAGES,
    PLAIN,
    QUICK_BUILD,
    Language,
    new_database,
    register,
)
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

README = (PROJECT / "README.md").read_text("utf-8")
(JSON_READER,) = re.findall(r"^json\(\) .*$", README, re.MULTILINE)
BUILT = shutil.ignore_patterns("node_modules", "target", "billing")


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_what_the_readme_types_issues_one_invoice_and_a_check_commits_the_other(
    language: Language, service: Service, tmp_path: Path
) -> None:
    missing = language.missing()
    if missing is not None:
        pytest.skip(f"{missing} is not on this machine")
    group = f"billing-{language.name}"
    database_url = new_database(service, f"billing_{language.name}")["DATABASE_URL"]
    dev = tmp_path / ".outbox-dev"
    dev.mkdir()
    (dev / "dev.json").write_text(json.dumps({"database_url": database_url}), "utf-8")
    shutil.copytree(PROJECT / language.source, tmp_path / language.source, ignore=BUILT)
    page = (PROJECT / language.source / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page.partition("## Try it")[2], re.DOTALL)
    (port,) = free_ports(1)
    environment = {
        "OUTBOX_API_URL": str(service.facts()["api_url"]),
        "PRODUCER_GROUP": group,
        "CHECK_SECRET": register(service, group, f"http://127.0.0.1:{port}/outbox/check"),
        "PORT": str(port),
    }
    with subprocess.Popen(
        ["bash", "-euc", f"{JSON_READER}\n{block}\nwait"],
        cwd=tmp_path / language.source / language.example,
        env=PLAIN | QUICK_BUILD | environment,
        start_new_session=True,
    ) as typed:
        try:
            wait_for(lambda: typed.poll() is not None or published(service, group), seconds=300)
            assert typed.poll() is None, "a command has failed"
        finally:
            os.killpg(typed.pid, signal.SIGKILL)
    decided_by = {each["transaction_id"]: each["decided_by"] for each in messages(service, group)}
    assert decided_by == {"invoice-7731": "producer", "invoice-7732": "check"}
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT number FROM invoice ORDER BY number").fetchall()
    assert rows == [(7731,), (7732,)]


def messages(service: Service, group: str) -> list[dict[str, Any]]:
    """Return the messages of a group."""
    answer = service.http.get("/v1/half-messages", params={"producer_group": group})
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def published(service: Service, group: str) -> bool:
    """Return whether both messages of a group are in Kafka."""
    return [each["state"] for each in messages(service, group)] == ["PUBLISHED"] * 2
