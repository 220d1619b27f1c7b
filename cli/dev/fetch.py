"""`outbox dev --fetch`: fetches the Java and native artifacts that `pom.xml` names.

No other step needs a network, and this one does not either once Maven's local repository has them.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable

from cli.invocation.exit_codes import CommandFailed
from devservers.artifacts import PROJECT_ROOT, RUNTIME, unpack_postgres
from devservers.kafka import make_class_archive
from devservers.unprivileged import reachable, unprivileged_user

FOLDERS = ("kafka", "spark", "postgres")


def fetch_artifacts(say: Callable[[str], None]) -> None:
    """Recreate `.runtime`: jars, the unpacked PostgreSQL, Kafka's and Spark's class archives.

    Raises CommandFailed if Maven is missing or fails or Spark does not start, and EmbeddedError if
    the broker does not start.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise CommandFailed("Maven is missing: install it (for example `apt-get install maven`)")
    for folder in FOLDERS:
        shutil.rmtree(RUNTIME / folder, ignore_errors=True)
    for archive in RUNTIME.glob("kafka-*.jsa"):
        archive.unlink()
    say("fetching Kafka, PostgreSQL and Spark's connectors with Maven")
    _run_maven(maven)
    say("unpacking PostgreSQL")
    unpack_postgres(reachable(RUNTIME / "postgres", unprivileged_user()))
    say("recording Kafka's class archive")
    make_class_archive()
    say("recording Spark's class archive")
    _record_spark()


def _run_maven(maven: str) -> None:
    """Try without the network first: it is faster, and an offline machine has no other way."""
    command = [maven, "-q", "-B", "package"]
    offline = subprocess.run(
        [*command, "-o"], cwd=PROJECT_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if offline.returncode != 0 and subprocess.run(command, cwd=PROJECT_ROOT).returncode != 0:
        raise CommandFailed("Maven could not fetch the artifacts: see its messages above")


def _record_spark() -> None:
    if subprocess.run(
        [sys.executable, "-m", "spark.jvm.class_archive_builder"], cwd=PROJECT_ROOT
    ).returncode:
        raise CommandFailed("Spark's class archive was not written: see the message above")
