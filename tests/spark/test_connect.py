"""Our session on a real Spark Connect server: jars, settings, frames, the stage."""

from __future__ import annotations

import json
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import pytest

from spark.session import SPARK_VERSION
from tests.places import PROJECT
from tests.spark.clusters import connect_server

pytestmark = pytest.mark.spark


def test_a_spark_connect_server_gives_back_what_an_audit_hands_it(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.connect_steps", address, str(tmp_path)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    bills = {"topic": "bills", "target": 2.0, "allowed": None}
    points = {"topic": "points", "target": 1.5, "allowed": None}
    assert (seen["version"], seen["nothing"]) == (SPARK_VERSION, True)
    assert seen["collected"] == {"sum": 3.5}
    assert sorted(seen["iterated"], key=itemgetter("topic")) == [bills, points]
    assert {"topic", "partition", "offset", "message_id", "digest", "key_hash"} <= {
        *seen["records"]
    }
    refused = "OUTBOX_RECONCILE_SPARK_CONF: spark.executor.memory is the Spark Connect server's"
    assert seen["refused"].startswith(refused)
