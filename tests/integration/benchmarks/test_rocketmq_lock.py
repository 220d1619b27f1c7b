"""RocketMQ runs only as it is locked: each jar by its hash, the servers of one version."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rivals.rocketmq.servers import LOCK, VERSION
from devservers.artifact_lock import read_lock, verify_artifacts
from devservers.errors import ArtifactsChanged


def test_each_line_of_the_lock_is_read() -> None:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if line[:1] != "#"]
    assert [each.line for each in read_lock(LOCK)] == lines


def test_name_server_broker_and_client_are_locked_at_one_version() -> None:
    locked = {each.artifact: each.version for each in read_lock(LOCK)}
    servers = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-client")
    assert {locked[each] for each in servers} == {VERSION}


def test_a_folder_with_another_jar_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "rocketmq"
    folder.mkdir()
    (folder / "rocketmq-broker-5.5.0.jar").write_bytes(b"PK")
    with pytest.raises(ArtifactsChanged, match="rocketmq-broker"):
        verify_artifacts(folder, LOCK)
