"""`make up` with the files of this version upgrades the previous stack and keeps its data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.containers.fixtures_page import commands, typed
from tests.containers.fixtures_stack import Stack, copy_files, stack_of_a_copy
from tests.e2e.fixtures_topic_reader import read_topic
from tests.e2e.upgrade.fixtures_releases import previous_tree
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

GROUP, TOPIC = "shop", "orders"
ENDPOINT = "https://shop.example.com/check"
NEVER_CHECKED = {"check_url": ENDPOINT, "transaction_timeout_seconds": 3600}
FIXED_PORT = "127.0.0.1:8080:8080"
DEVELOPMENT_LOCK, BUILD_LOCK = "requirements/dev.txt", "requirements/build.txt"
"""The older image installs Spark to build its wheel; what that needs is much less."""


@pytest.fixture
def older(engine: Mapping[str, str], tmp_path: Path) -> Iterator[Stack]:
    """Yield the running stack of the previous release; its API has a port of its own."""
    tree = previous_tree(tmp_path)
    with stack_of_a_copy(tmp_path / "outbox", engine, name="outbox-upgrade", source=tree) as made:
        port = f"127.0.0.1:{made.ports['API_PORT']}:8080"
        change(made.folder / "docker-compose.yml", FIXED_PORT, port)
        shutil.copy(PROJECT / BUILD_LOCK, made.folder / BUILD_LOCK)
        change(made.folder / "deploy/Dockerfile", DEVELOPMENT_LOCK, BUILD_LOCK)
        made.up()
        made.admin_key = json.loads(typed(made, commands("Start")[0].splitlines()[1]))["api_key"]
        typed(made, *commands("Topics"))
        yield made


def change(file: Path, old: str, new: str) -> None:
    """Replace a text of a file."""
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


class Producer:
    """Prepares and ends messages through the published port of a stack."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def put_group(self) -> None:
        """Register a group that is not asked for an hour."""
        with self.stack.http() as http:
            answer = http.put(f"/v1/producer-groups/{GROUP}", json=NEVER_CHECKED)
        assert answer.status_code == 201, answer.text

    def prepare(self, value: str) -> str:
        """Prepare a message; return its id."""
        body = {"producer_group": GROUP, "topic": TOPIC, "key": "k", "value": value}
        return str(self._post("/v1/half-messages", body)["message_id"])

    def commit(self, message_id: str) -> None:
        """End a message with COMMIT."""
        self._post(f"/v1/half-messages/{message_id}/end", {"decision": "COMMIT"})

    def state(self, message_id: str) -> str:
        """Return the state of a message."""
        with self.stack.http() as http:
            return str(http.get(f"/v1/half-messages/{message_id}").json()["state"])

    def wait_published(self, message_id: str) -> None:
        """Wait until Kafka has the record."""
        wait_for(lambda: self.state(message_id) == "PUBLISHED", 120, every=0.5)

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self.stack.http() as http:
            answer = http.post(path, json=body)
        assert answer.status_code < 300, answer.text
        found: dict[str, Any] = answer.json()
        return found


def test_make_up_with_the_files_of_this_version_keeps_what_the_previous_one_had(
    older: Stack,
) -> None:
    producer = Producer(older)
    producer.put_group()
    published, undecided = producer.prepare("published"), producer.prepare("undecided")
    producer.commit(published)
    producer.wait_published(published)
    older.compose("stop", "checker")
    committed = producer.prepare("committed")
    producer.commit(committed)
    image = older.containers()["api"]["Image"]
    pepper = (older.folder / "deploy/secrets/auth_pepper").read_text()

    copy_files(PROJECT, older.folder)
    older.up()
    assert older.containers()["api"]["Image"] != image
    assert (older.folder / "deploy/secrets/auth_pepper").read_text() == pepper
    assert producer.state(published) == "PUBLISHED"
    assert producer.state(undecided) == "PREPARED"
    producer.wait_published(committed)
    producer.commit(undecided)
    later = producer.prepare("later")
    producer.commit(later)
    for message_id in (undecided, later):
        producer.wait_published(message_id)
    records = read_topic(f"localhost:{older.ports['KAFKA_PORT']}", TOPIC)
    assert [each.message_id for each in records] == [published, committed, undecided, later]
