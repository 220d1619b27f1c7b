"""A broker that takes less in one transaction than a full batch has, by its quota or its limits."""

from __future__ import annotations

import json
import subprocess
from typing import Final
from uuid import uuid4

import pytest

from checker.relay.shard_relay import ShardRelay
from checker.relay_wiring import RelayBuilder
from devservers.artifacts import kafka_jars
from devservers.class_archive import class_path, java
from outbox.settings.environment import load_settings
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, drain

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

BYTES_PER_SECOND: Final = 25_000
VALUES: Final = [b"%04d" % n * 500 for n in range(200)]
"""Two kilobytes each, sixteen seconds of the quota together: twice the time of a record."""


def limit_producer(servers: str, client: str, rate: int) -> None:
    """Set the quota of a client id by Kafka's own tool."""
    tool = [str(java()), "-cp", class_path(kafka_jars("")), "kafka.admin.ConfigCommand"]
    quota = ["--entity-type", "clients", "--entity-name", client]
    change = ["--alter", "--add-config", f"producer_byte_rate={rate}"]
    subprocess.run(
        [*tool, "--bootstrap-server", servers, *quota, *change], check=True, capture_output=True
    )


def limited_relay(world: RelayWorld) -> ShardRelay:
    """Open a relay whose producer has a quota; small requests are delayed one by one."""
    client = f"slow-{uuid4()}"
    limit_producer(world.bootstrap_servers, client, BYTES_PER_SECOND)
    config = json.dumps({"client.id": client, "batch.size": 16_384})
    settings = load_settings({**world.checker_environment, "OUTBOX_KAFKA_CONFIG": config})
    relay = RelayBuilder(settings, world.metrics, world.progress_topic).open(SHARD)
    world.opened.append(relay)
    return relay


def test_a_batch_that_is_too_large_for_a_quota_is_published_in_parts(
    world: RelayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.batch_max = len(VALUES)
    relay = limited_relay(world)
    world.commit_values(*VALUES)
    drain(relay, rounds=24)
    assert world.values(len(VALUES)) == VALUES
    dropped = [line for line in "".join(capsys.readouterr()).splitlines() if "undelivered" in line]
    assert f"{world.topic}: _MSG_TIMED_OUT" in dropped[0], "an operator learns which topic waits"
