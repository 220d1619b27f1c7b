"""A class-data archive (AppCDS) that halves the broker's start time.

It is valid for one JVM and one exact class path, so its name contains a hash of both. The JVM
ignores a stale archive.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from devservers.artifacts import RUNTIME
from devservers.errors import ArtifactsMissing


def java() -> Path:
    """Return the `java` on the PATH; raise ArtifactsMissing without one."""
    found = shutil.which("java")
    if found is None:
        raise ArtifactsMissing("Java 17 or newer (no `java` on the PATH)")
    return Path(found).resolve()


def class_path(jars: Sequence[Path]) -> str:
    """Return the class path, sorted and explicit: `dir/*` would invalidate the archive."""
    return ":".join(str(jar) for jar in jars)


def archive_path(jars: Sequence[Path]) -> Path:
    """Return the path of the archive for this JVM and class path; it may not exist."""
    facts = hashlib.sha256()
    for file in (java(), *jars):
        state = file.stat()
        facts.update(f"{file} {state.st_size} {state.st_mtime_ns}\n".encode())
    return RUNTIME / f"kafka-{facts.hexdigest()[:16]}.jsa"


def archive_options(jars: Sequence[Path]) -> list[str]:
    """Return the JVM options that use the archive; empty without an archive."""
    archive = archive_path(jars)
    return (
        [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off"]
        if archive.is_file()
        else []
    )


def recording_options(archive: Path) -> list[str]:
    """Return the JVM options that write an archive at its end."""
    return [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
