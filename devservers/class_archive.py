"""A class-data archive (AppCDS) that halves the broker's start.

It holds for one JVM and one exact class path, so its name says both; a stale one is ignored by the
JVM, never wrong.
"""

import hashlib
import shutil
from pathlib import Path

from devservers.artifacts import RUNTIME, kafka_jars
from devservers.errors import ArtifactsMissing


def java() -> Path:
    """Return the `java` on the PATH; raise ArtifactsMissing without one."""
    found = shutil.which("java")
    if found is None:
        raise ArtifactsMissing("Java 17 or newer (no `java` on the PATH)")
    return Path(found).resolve()


def class_path() -> str:
    """Return the broker's class path, sorted and explicit: `dir/*` would void the archive."""
    return ":".join(str(jar) for jar in kafka_jars())


def archive_path() -> Path:
    """Return where the archive for this JVM and class path belongs; it may not exist."""
    facts = hashlib.sha256()
    for file in (java(), *kafka_jars()):
        state = file.stat()
        facts.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return RUNTIME / f"kafka-{facts.hexdigest()[:16]}.jsa"


def archive_options() -> list[str]:
    """Return the JVM's options to use the archive, none without it."""
    archive = archive_path()
    return (
        [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off"]
        if archive.is_file()
        else []
    )


def recording_options(archive: Path) -> list[str]:
    """Return the JVM's options to write an archive when it ends."""
    return [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
