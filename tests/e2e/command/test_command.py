"""The `outbox` command against a running service: its output and its exit codes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.invocation.exit_codes import ExitCode
from outbox.messages.message_id import parse_message_id
from outbox.postgres.reconciliation.run_store import PostgresRunStore
from tests.e2e.fixtures_check_endpoint import CheckEndpoint, check_endpoint
from tests.e2e.fixtures_command import OUTBOX, Ended
from tests.e2e.fixtures_command_here import Command
from tests.e2e.fixtures_service import Service
from tests.integration.postgres.reconciliation.fixtures_stored_runs import make_finding, make_run

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

SECRET = f"whsec_{'QUFB' * 8}"
UNKNOWN_ID = "00000000-0000-8000-8000-000000000000"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[CheckEndpoint]:
    """Yield a check endpoint that answers UNKNOWN."""
    with check_endpoint(lambda _: "UNKNOWN") as running:
        yield running


def test_a_group_is_created_shown_and_changed_field_by_field(
    outbox: Command, service: Service, endpoint: CheckEndpoint
) -> None:
    name = service.new_name("group")
    made = outbox("group", "set", name, "--check-url", endpoint.url, "--check-max", "7")
    assert made.code == ExitCode.OK, made.err
    assert made.json()["check_secret"].startswith("whsec_")
    changed = outbox("group", "set", name, "--on-check-max", "rollback").json()
    assert (changed["check_max"], changed["on_check_max"]) == (7, "rollback")
    assert outbox("group", "show", name).json()["on_check_max"] == "rollback"


def test_the_groups_of_a_file_become_what_it_says_and_what_differed_is_shown(
    outbox: Command, service: Service, endpoint: CheckEndpoint, tmp_path: Path
) -> None:
    file, group = tmp_path / "groups.yml", f"- producer_group: {service.new_name('group')}\n  "

    def apply(text: str) -> Ended:
        file.write_text(text, "utf-8")
        return outbox("group", "apply", str(file))

    whole = f"{group}check_url: {endpoint.url}\n  check_secret: {SECRET}\n"
    [made] = apply(whole).json()
    assert made["difference"] == {"check_url": f"None -> {endpoint.url}", "version": "None -> 1"}
    assert made["check_secret"] is None
    assert apply(whole).json()[0]["difference"] == {}
    ended = apply(f"{group}check_max: 7\n{group}check_max: 0\n")
    assert ended.json()[0]["difference"] == {"check_max": "15 -> 7", "version": "1 -> 2"}
    assert made["producer_group"] in ended.err
    assert "check_max must be" in ended.err
    refused = apply(f"- {{check_secret: {SECRET}")
    assert (refused.code, SECRET in refused.err) == (ExitCode.USAGE, False)


def test_a_message_is_listed_shown_and_ended(
    outbox: Command, service: Service, endpoint: CheckEndpoint
) -> None:
    group = service.group(endpoint.url, transaction_timeout_seconds=600)
    named = {"value": "canary", "transaction_id": "invoice-58"}
    message_id = service.prepare(group, service.new_topic(), **named)
    listed = outbox("-o", "table", "message", "list", "--group", group).out.split()
    assert {message_id, "invoice-58"} <= {*listed}
    assert outbox("message", "show", message_id).json()["state"] == "PREPARED"
    assert outbox("message", "show", message_id, "--payload").json()["value"] == "canary"
    ended = outbox("message", "end", message_id, "--decision", "COMMIT", "--wait", "20").json()
    assert ended["state"] == "PUBLISHED"
    events = outbox("message", "show", message_id, "--history").json()["events"]
    assert [event["type"] for event in events][:2] == ["prepared", "decided"]


def test_the_tail_of_a_topic_shows_each_record_until_an_interrupt(
    outbox: Command, service: Service, endpoint: CheckEndpoint
) -> None:
    group, topic = service.group(endpoint.url, transaction_timeout_seconds=600), service.new_topic()
    assert outbox("message", "tail", topic).code == ExitCode.NOT_FOUND
    first, _, later = (service.prepare(group, topic, value=text) for text in ("a", "b", "\n"))
    service.end(first, "COMMIT", wait=20)
    words = ["env", "--default-signal=INT", OUTBOX, "message", "tail", topic]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        shown = json.loads(process.stdout.readline())
        assert (shown["value"], shown["headers"]["outbox_message_id"]) == ("a", first)
        service.end(later, "COMMIT", wait=20)
        assert json.loads(process.stdout.readline())["value"] == "\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (ExitCode.INTERRUPTED, b"outbox: interrupted\n")


def test_an_api_that_is_not_there_is_exit_6(outbox: Command) -> None:
    gone = outbox("--url", "http://127.0.0.1:1", "message", "list")
    assert gone.code == ExitCode.UNREACHABLE
    assert gone.err == (
        "outbox: cannot reach http://127.0.0.1:1: Connection refused; start the API, or name it"
        " with --url\n"
    )


def test_without_an_api_the_command_explains_how_to_set_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = Command(capsys)("message", "list")
    assert (lost.code, lost.out) == (ExitCode.USAGE, "")
    assert "--url" in lost.err


def test_the_first_key_is_written_to_the_database(
    outbox: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("key", "create", "--database", "--name", "first", "--scope", "admin", "--group", "*")
    assert outbox(*words).code == ExitCode.USAGE, "no pepper"
    monkeypatch.setenv("OUTBOX_AUTH_PEPPER", "cGVwcGVyIG9mIHRoZSB0ZXN0cw==")
    made = outbox(*words, "--expires-in", "90d").json()
    assert made["api_key"].startswith(f"obx_{made['key_id']}_")
    assert made["expires_at"] > made["created_at"]
    assert outbox(*words, "--expires-in", "soon").code == ExitCode.USAGE
    assert outbox("key", "revoke", made["key_id"]).code == ExitCode.OK
    assert outbox("key", "revoke", made["key_id"]).code == ExitCode.NOT_FOUND


@pytest.mark.parametrize(
    ("words", "code", "way"),
    [
        (f"message show {UNKNOWN_ID}", ExitCode.NOT_FOUND, "outbox message list"),
        ("shard resolve 3 --accept --reason x", ExitCode.CONFLICT, "outbox shard list"),
        ("reconcile show never", ExitCode.NOT_FOUND, "outbox reconcile list"),
    ],
)
def test_a_refusal_names_the_command_that_lists_what_there_is(
    outbox: Command, words: str, code: ExitCode, way: str
) -> None:
    refused = outbox("-o", "table", *words.split())
    assert (refused.code, refused.out) == (code, "")
    assert f"`{way}`" in refused.err


def test_status_shows_every_shard_and_task(outbox: Command) -> None:
    body = outbox("status").json()
    assert [shard["shard"] for shard in body["shards"]] == list(range(16))
    assert {"relay", "sweep", "check"} <= {task["task"] for task in body["tasks"]}
    table = outbox("-o", "table", "status").out
    assert table.count("\n") > 16
    assert re.search(r"^relay +\d+\.\d s", table, re.MULTILINE)


def test_the_doctor_finds_nothing_wrong_with_the_stores(outbox: Command) -> None:
    findings = {each["check"]: each["verdict"] for each in outbox("doctor").json()}
    for check in ("postgres version", "fsync", "migrations", "kafka", "outbox.progress"):
        assert findings[check] == "ok"
    assert findings["min.insync.replicas"] == "warning", "one broker"
    tasks = {check: verdict for check, verdict in findings.items() if check.startswith("task ")}
    assert {"task relay", "task check", "task sweep", "task retire"} <= tasks.keys()
    assert set(tasks.values()) == {"ok"}, "also those with work once a minute"
    assert {"parked messages", "held messages", "messages"} <= findings.keys()


def test_a_lost_message_is_planned_then_published_again_and_found_in_its_topic(
    outbox: Command, service: Service, endpoint: CheckEndpoint
) -> None:
    topic, run_id = service.new_topic(), service.new_name("run")
    message_id = service.prepare(
        service.group(endpoint.url), topic, key="k", value="lost and found"
    )
    service.end(message_id, "COMMIT", wait=20)
    service.wait_state(message_id, "PUBLISHED")
    half_id, _ = parse_message_id(message_id)
    lost = replace(
        make_finding(f"f-{run_id}"), half_id=half_id, evidence={"message_id": message_id}
    )
    store = PostgresRunStore(service.facts()["database_url"])
    store.save(make_run(run_id, findings=(lost,)))
    fix = ("reconcile", "fix", run_id)
    plan = outbox(*fix).json()["plan"]
    assert [(row["message_id"], row["plan"]) for row in plan] == [(message_id, "republish")]
    assert outbox(*fix, "--apply").code == ExitCode.USAGE
    assert outbox(*fix, "--class", "LOST/skipped").json()["plan"] == []
    assert outbox(*fix, "--finding", lost.finding_id).json()["plan"] == plan
    applied = outbox(*fix, "--apply", "--reason", "unclean election")
    assert applied.code == ExitCode.OK, applied.err
    assert "1 handed to the relay" in applied.err
    service.wait_state(message_id, "PUBLISHED")
    first, again = service.records(topic)
    assert (first.value, again.value) == (b"lost and found", b"lost and found")
    assert "outbox_redriven" not in dict(first.headers)
    assert dict(again.headers)["outbox_redriven"] in applied.err
    store.save(make_run(f"{run_id}-next"))
    found = outbox("reconcile", "show", run_id, "--kind", "missing").json()["data"]
    assert [each["status"] for each in found] == ["fixed"]


def test_findings_are_accepted_for_a_while(outbox: Command, service: Service) -> None:
    run_id = service.new_name("run")
    lost, store = make_finding(f"l-{run_id}"), PostgresRunStore(service.facts()["database_url"])
    store.save(make_run(run_id, findings=(lost,)))
    accept = ("reconcile", "fix", run_id, "--accept", lost.finding_id, "--reason", "known")
    assert outbox(*accept).code == ExitCode.USAGE
    accepted = outbox(*accept, "--until", "30d")
    assert accepted.code == ExitCode.OK, accepted.err
    shown = outbox("reconcile", "show", run_id, "--kind", "missing").json()["data"]
    assert [each["status"] for each in shown] == ["accepted"]
