"""The same job on a cluster: `deploy/spark/submit.sh` to a master with two workers on loopback."""

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
from pyspark.sql import SparkSession

from devservers.child import CLEAN_ENVIRONMENT, Child, Command
from devservers.class_archive import java
from devservers.kafka import EmbeddedKafka
from devservers.loopback import LOOPBACK, free_ports
from spark.audit.audit import Audit
from spark.jvm.session import QUICK_JVM
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_runs import make_options, make_parts
from tests.spark.jvm.fixtures_planted_faults import classes_found, plant_faults

pytestmark = [*REAL_STORES, pytest.mark.deep]

PROJECT: Final = Path(__file__).parents[3]
SPARK_HOME: Final = Path(pyspark.__file__).parent
SUBMIT: Final = PROJECT / "deploy/spark/submit.sh"
WORKERS: Final = ("first", "second")
START_SECONDS: Final = 120.0
CLUSTER: Final = {
    "spark.driver.host": LOOPBACK,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
}
"""Small executors, no compilation for forty messages, no job before both are there."""
SMALL_DRIVER: Final = (
    "--driver-memory 512m --conf spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    """A master and its workers, each with a folder of its own."""

    master: str
    folder: Path

    def executor_logs(self, worker: str) -> str:
        """Return what the executors on a worker have logged."""
        logs = sorted((self.folder / worker).glob("app-*/*/stderr"))
        return "".join(log.read_text() for log in logs)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """One master with two workers of one core each."""
    port, page = free_ports(2)
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        listen = ("--host", LOOPBACK)
        leader = _daemon(
            tmp_path, "master.Master", *listen, "--port", str(port), "--webui-port", str(page)
        )
        stack.callback(leader.stop)
        for name in WORKERS:
            room = ("--cores", "1", "--memory", "600m", "--webui-port", "0")
            work = ("--work-dir", str(tmp_path / name), master)
            stack.callback(_daemon(tmp_path, "worker.Worker", *listen, *room, *work).stop)
        leader.wait_until(lambda: _alive_workers(page) == len(WORKERS), START_SECONDS)
        yield StandaloneCluster(master=master, folder=tmp_path)


def test_two_workers_find_what_the_local_job_finds(
    database_url: str,
    own_broker: EmbeddedKafka,
    session: SparkSession,
    cluster: StandaloneCluster,
    tmp_path: Path,
) -> None:
    writer, faults = plant_faults(database_url, own_broker.bootstrap_servers)
    local = Audit(make_parts(session, writer), make_options(writer, tmp_path / "local")).run()

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
    same = {(each["class"], each["finding_id"]) for each in report["findings"]}
    assert same == {(f.finding_class.value, f.finding_id) for f in local.findings}
    assert classes_found(report) == faults
    assert report["coverage"]["ratio"] == 1
    for worker in WORKERS:
        assert "Running task" in cluster.executor_logs(worker), worker


def _daemon(folder: Path, program: str, *arguments: str) -> Child:
    """Start Spark's own daemon as our child; executors inherit its environment."""
    log = folder / f"{program.partition('.')[0]}.out"
    jars = f"{SPARK_HOME}/jars/*"
    words = [str(java()), "-Xmx192m", *QUICK_JVM.split(), "-cp", jars]
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
        "SPARK_SUBMIT_OPTIONS": SMALL_DRIVER,
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
