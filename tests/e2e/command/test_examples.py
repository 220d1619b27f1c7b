"""The example in the help of each command does what it says, on a running installation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.app import make_app
from cli.invocation.examples import EXAMPLES
from cli.invocation.exit_codes import ExitCode
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import Service
from tests.fixtures_paths import PROJECT
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_run

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

OF_THE_AUDIT = {"reconcile run"}
"""Commands whose help is that of the program which they become."""
NOT_RUN = {
    *("dev", "api", "checker"),
    *("installation renew", "installation rebase", "shard resolve"),
}
"""They start programs, or change the installation that all tests share: their flags are read."""
OTHER_CODES: Mapping[str, set[ExitCode]] = {
    "doctor": {ExitCode.OK, ExitCode.ERROR},
    "group test": {ExitCode.OK, ExitCode.ERROR},
    "check simulate": {ExitCode.UNREACHABLE},
    "held release": {ExitCode.NOT_FOUND, ExitCode.CONFLICT},
    "held drop": {ExitCode.NOT_FOUND, ExitCode.CONFLICT},
}
"""Where an endpoint or a held record would have to be there first."""


PRINTED = {"check-endpoint.md": "group set", "operate.md": "message recheck"}
"""The first registers the group that the second asks about."""


def names(app: typer.Typer, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the words of each command."""
    for command in (each for each in app.registered_commands if not each.hidden):
        yield " ".join((*words, str(command.name)))
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from names(group.typer_instance, (*words, str(group.name)))


@pytest.fixture(scope="module")
def stored(service: Service) -> dict[str, str]:
    """Return what the words in capitals stand for."""
    with check_endpoint(lambda _: "UNKNOWN") as endpoint:
        fields: dict[str, Any] = {"check_url": endpoint.url, "transaction_timeout_seconds": 3600}
        answer = service.http.put("/v1/producer-groups/orders", json=fields)
        assert answer.status_code == 201, answer.text
    key = {"name": "k", "producer_groups": ["orders"], "scopes": ["messages:read"]}
    made = service.http.post("/v1/api-keys", json=key)
    service.end(service.prepare("orders", "invoices.issued"), "COMMIT", wait=20)
    run = make_run("one-for-examples")
    PostgresRunStore(service.facts()["database_url"]).save(run)
    return {"KEY_ID": made.json()["key_id"], "RUN_ID": run.run_id}


def test_each_command_has_an_example() -> None:
    ours = {name for name in names(make_app()) if not name.startswith("chaos")} - OF_THE_AUDIT
    assert ours == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_works(
    name: str,
    outbox: Command,
    service: Service,
    stored: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTBOX_CHECK_SECRET", "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
    page = (PROJECT / "docs" / "check-endpoint.md").read_text("utf-8")
    (tmp_path / "groups.yml").write_text(page.split("```yaml\n")[1].split("```")[0], "utf-8")
    message_id = service.prepare("orders", service.new_name("examples"))
    known = {**stored, "MESSAGE_ID": message_id}
    words = [known.get(word, word) for word in shlex.split(EXAMPLES[name])]
    assert words[0] == "outbox"
    if name in NOT_RUN:
        words.append("--help")
    ended = outbox(*words[1:])
    assert ended.code in OTHER_CODES.get(name, {ExitCode.OK}), ended.err


def test_a_command_that_a_page_shows_alone_works(outbox: Command, service: Service) -> None:
    for page, begins in PRINTED.items():
        text = (PROJECT / "docs" / page).read_text("utf-8")
        (line,) = re.findall(rf"^ *outbox ({begins} .*)$", text, re.MULTILINE)
        own = line.replace("billing", "printed-billing")  # another page registers the printed one
        ended = outbox(*shlex.split(own))
        assert ended.code == ExitCode.OK, ended.err
