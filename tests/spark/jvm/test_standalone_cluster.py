"""The same job on a cluster: `deploy/spark/submit.sh` to a master whose worker is on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pyspark
import pytest

from devservers.child import CLEAN_ENVIRONMENT, Child, Command
from devservers.class_archive import java
from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.jvm.fixtures_clusters import QUICK, SMALL_JOB
from tests.spark.jvm.fixtures_planted_faults import causes_found, plant_faults

pytestmark = [*REAL_STORES, pytest.mark.deep]

PROJECT: Final = Path(__file__).parents[3]
SPARK_HOME: Final = Path(pyspark.__file__).parent
SUBMIT: Final = PROJECT / "deploy/spark/submit.sh"
EXECUTORS: Final = 2
START_SECONDS: Final = 120.0
CLUSTER: Final = {
    "spark.driver.host": LOOPBACK,
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    **SMALL_JOB,
}
"""Small executors, no compilation for forty messages, no job before both are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    """A master and its worker, whose folder this is."""

    master: str
    folder: Path

    def executor_logs(self) -> list[str]:
        """Return what each executor has logged."""
        return [log.read_text() for log in self.folder.glob("app-*/*/stderr")]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """A master, and a worker with room for two executors of one core each."""
    port, page = free_ports(2)
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        listen = ("--host", LOOPBACK)
        leader = _daemon(
            tmp_path, "master.Master", *listen, "--port", str(port), "--webui-port", str(page)
        )
        stack.callback(leader.stop)
        room = ("--cores", str(EXECUTORS), "--memory", "1200m", "--webui-port", "0")
        work = ("--work-dir", str(tmp_path / "work"), master)
        stack.callback(_daemon(tmp_path, "worker.Worker", *listen, *room, *work).stop)
        leader.wait_until(lambda: _alive_workers(page) == 1, START_SECONDS)
        yield StandaloneCluster(master=master, folder=tmp_path / "work")


def test_two_executors_find_each_planted_fault_and_no_more(
    database_url: str, own_broker: EmbeddedKafka, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    faults = plant_faults(database_url, own_broker.bootstrap_servers)

    done = _submit(
        *("run", "--report", str(tmp_path / "reports")),
        database_url=database_url,
        kafka_bootstrap_servers=own_broker.bootstrap_servers,
        reconcile_spark_master=cluster.master,
        reconcile_spark_conf=json.dumps(CLUSTER),
    )

    assert done.returncode == 7, done.stdout[-2000:]
    (written,) = (tmp_path / "reports").glob("run_id=*/report.json")
    report = json.loads(written.read_text("utf-8"))
    assert causes_found(report) == faults
    assert report["coverage"]["ratio"] == 1
    ran = ["Running task" in log for log in cluster.executor_logs()]
    assert ran == [True] * EXECUTORS


def _daemon(folder: Path, program: str, *arguments: str) -> Child:
    """Start Spark's own daemon as our child; executors inherit its environment."""
    log = folder / f"{program.partition('.')[0]}.out"
    jars = f"{SPARK_HOME}/jars/*"
    words = [str(java()), "-Xmx192m", *QUICK.split(), "-cp", jars]
    environment = {
        **CLEAN_ENVIRONMENT,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
    }
    return Child(
        Command(
            name=program,
            arguments=[*words, f"org.apache.spark.deploy.{program}", *arguments],
            log=log,
            environment=environment,
        )
    )


def _alive_workers(page: int) -> int:
    try:
        with closing(urlopen(f"http://{LOOPBACK}:{page}/json/", timeout=5)) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0


def _submit(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the script to its end; it prints what the job and Spark say."""
    programs = Path(sys.executable).parent
    environment = {
        **CLEAN_ENVIRONMENT,
        "PATH": f"{programs}:{java().parent}:{CLEAN_ENVIRONMENT['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_SUBMIT_OPTIONS": "--driver-memory 512m",
        "SPARK_SUBMIT_OPTS": QUICK,
        **{f"OUTBOX_{name.upper()}": text for name, text in settings.items()},
    }
    return subprocess.run(
        [SUBMIT, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
