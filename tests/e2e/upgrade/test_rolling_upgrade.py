"""API and checker are replaced one by one under load, to this release, back, and to it again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from devservers.postgres import EmbeddedPostgres
from tests.e2e.fixtures_check_endpoint import check_endpoint
from tests.e2e.fixtures_topic_reader import Seen, read_topic
from tests.e2e.upgrade.fixtures_producers import Load, running
from tests.e2e.upgrade.fixtures_releases import Release, previous_tree
from tests.fixtures_databases import as_role, drop_database, let_roles_log_in, make_database
from tests.fixtures_kafka import make_topic
from tests.fixtures_paths import PROJECT
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]


class Programs:
    """One API and one checker; the next release starts before the other stops."""

    def __init__(self, database_url: str, load: Load) -> None:
        self.database_url = database_url
        self.load = load
        self._api, self._checker = ExitStack(), ExitStack()

    def start_api(self, release: Release) -> None:
        """Start an API of the release, send the load there, stop the one before."""
        following = ExitStack()
        url = as_role(self.database_url, "outbox_api")
        self.load.addresses.append(following.enter_context(release.api(url)))
        self._api.close()
        del self.load.addresses[:-1]
        self._api = following

    def start_checker(self, release: Release) -> None:
        """Start a checker of the release, then stop the one before."""
        following = ExitStack()
        url = as_role(self.database_url, "outbox_checker")
        following.enter_context(release.checker(url))
        self._checker.close()
        self._checker = following

    def close(self) -> None:
        """Stop both."""
        self._api.close()
        self._checker.close()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a broker of its own: the topic of the manifests has one name."""
    with separate_broker(tmp_path) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def empty_database(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """Yield the URL of a database without a schema."""
    url = make_database(postgres_server.database_url, None)
    yield url
    drop_database(postgres_server.database_url, url)


def register(url: str, group: str, check_url: str) -> None:
    """Register a producer group whose first check comes after two seconds."""
    body = {
        "check_url": check_url,
        "transaction_timeout_seconds": 2,
        "check_interval_seconds": 1,
        "check_max": 30,
    }
    answer = httpx2.put(f"{url}/v1/producer-groups/{group}", json=body, trust_env=False)
    assert answer.status_code == 201, answer.text


@contextmanager
def programs(database_url: str, load: Load) -> Iterator[Programs]:
    """Run what the block starts, until its end."""
    started = Programs(database_url, load)
    try:
        yield started
    finally:
        started.close()


def values(records: list[Seen]) -> list[str]:
    """Return the records' values, by partition and offset."""
    return [(record.value or b"").decode() for record in records]


def numbers_by_key(records: list[Seen]) -> dict[bytes | None, list[int]]:
    """Return the numbers of the messages of each key, as consumers see them."""
    found = defaultdict(list)
    for record in records:
        found[record.key].append(int((record.value or b"").decode().rpartition(":")[2]))
    return found


def test_a_rolling_upgrade_and_its_return_lose_double_and_reorder_nothing(
    tmp_path: Path, own_broker: str, empty_database: str
) -> None:
    settings = {"KAFKA_BOOTSTRAP_SERVERS": own_broker, "CHECK_ALLOW_CIDRS": "127.0.0.0/8"}
    insecure = {**settings, "AUTH_MODE": "dev-insecure"}
    old = Release("previous", previous_tree(tmp_path), insecure, tmp_path)
    new = Release("present", PROJECT, insecure, tmp_path)
    topic = make_topic(own_broker, partitions=4)
    load = Load(addresses=[], group="account", topic=topic)
    with (
        check_endpoint(lambda _: "COMMIT") as endpoint,
        programs(empty_database, load) as steps,
    ):
        old.migrate(empty_database)
        let_roles_log_in(empty_database)
        steps.start_api(old)
        steps.start_checker(old)
        register(load.addresses[0], load.group, endpoint.url)
        with running(load):
            load.go_on()
            new.migrate(empty_database)
            load.go_on()
            for release in (new, old, new):
                steps.start_checker(release)
                load.go_on()
                steps.start_api(release)
                load.go_on()
        expected = Counter(load.committed + load.left_open)
        wait_for(lambda: len(read_topic(own_broker, topic)) >= len(expected), seconds=120)
        records = read_topic(own_broker, topic)
    assert Counter(values(records)) == expected
    for key, numbers in numbers_by_key(records).items():
        assert key == b"checked" or numbers == sorted(numbers), key
