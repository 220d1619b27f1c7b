"""A Spark Connect server on loopback, started as `deploy/spark` does."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devservers.child import CLEAN_ENVIRONMENT, Child, Command
from devservers.class_archive import java
from devservers.loopback import LOOPBACK, free_ports
from spark.jvm.session import QUICK_JVM
from tests.fixtures_paths import PROJECT

PROGRAMS: Final = Path(sys.executable).parent
START_SECONDS: Final = 120.0
QUICK: Final = f"{QUICK_JVM} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Settings for a JVM that lives for one test: Spark's classes are used without optimization."""
SMALL_JOB: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""No Java is generated and compiled for a few rows."""
SMALL_DRIVER: Final = {**SMALL_JOB, "spark.driver.extraJavaOptions": QUICK}


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Run a Spark Connect server and yield its address."""
    (port,) = free_ports(1)
    options = f"--master local[2] --driver-memory 1g --conf spark.connect.grpc.binding.port={port}"
    server = Child(
        Command(
            name="the Spark Connect server",
            arguments=[str(PROJECT / "deploy/spark/connect-server.sh")],
            log=folder / "connect.out",
            environment={
                **CLEAN_ENVIRONMENT,
                "PATH": f"{PROGRAMS}:{java().parent}:{CLEAN_ENVIRONMENT['PATH']}",
                "SPARK_LOCAL_IP": LOOPBACK,
                "SPARK_LOCAL_DIRS": str(folder),
                "SPARK_SUBMIT_OPTIONS": f"{options} --conf spark.ui.enabled=false",
                "SPARK_SUBMIT_OPTS": QUICK,
            },
        )
    )
    try:
        server.wait_until(lambda: _answers(port), START_SECONDS)
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.kill()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=5):
            return True
    except OSError:
        return False
