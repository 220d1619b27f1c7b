"""The lock of the Maven artifacts: each jar's coordinates and SHA-256, as the Python lock has them.

Maven takes what the registry sends, and checks it against a checksum from the same registry. So
each fetched folder is compared with `requirements/maven.txt` before anything in it runs. After a
change of a version run ``python -m devservers.artifact_lock FOLDER...`` (for example ``kafka``),
and look at what changed. ``--lock`` names another lock, as that of what only a benchmark fetches.
"""

import argparse
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from devservers.artifacts import PROJECT_ROOT, RUNTIME
from devservers.errors import ArtifactsChanged

LOCK = PROJECT_ROOT / "requirements" / "maven.txt"
MAVEN_REPOSITORY = Path.home() / ".m2" / "repository"
_LINE = re.compile(r"(\S+)/(\S+) (\S+):(\S+):(\S+) --hash=sha256:([0-9a-f]{64})")


class LockedArtifact(NamedTuple):
    """One jar: its folder of `.runtime`, its file, its coordinates, its hash."""

    folder: str
    file: str
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        """The artifact's line in the lock."""
        coordinates = f"{self.group}:{self.artifact}:{self.version}"
        return f"{self.folder}/{self.file} {coordinates} --hash=sha256:{self.sha256}"


def read_lock(lock: Path = LOCK) -> list[LockedArtifact]:
    """Return every locked artifact."""
    lines = (line for line in lock.read_text("utf-8").splitlines() if not line.startswith("#"))
    found = [_LINE.fullmatch(line) for line in lines]
    return [LockedArtifact(*match.groups()) for match in found if match]


def verify_artifacts(folder: Path, lock: Path = LOCK) -> None:
    """Raise ArtifactsChanged unless a folder has the locked jars, byte for byte, and no others."""
    wanted = {each.file: each.sha256 for each in read_lock(lock) if each.folder == folder.name}
    found = {path.name: _sha256(path) for path in folder.glob("*.jar")}
    wrong = sorted(
        name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
    )
    if wrong or not wanted:
        raise ArtifactsChanged(folder.name, wrong)


def update_lock(folders: list[str], lock: Path = LOCK) -> None:
    """Lock what the folders hold now; other folders stay as they are locked."""
    kept = [each for each in read_lock(lock) if each.folder not in folders]
    new = [
        _locked(folder, path)
        for folder in folders
        for path in sorted((RUNTIME / folder).glob("*.jar"))
    ]
    comments = [line for line in lock.read_text("utf-8").splitlines() if line.startswith("#")]
    lines = sorted(each.line for each in (*kept, *new))
    lock.write_text("\n".join([*comments, *lines, ""]), "utf-8")


def _locked(folder: str, path: Path) -> LockedArtifact:
    """Return a jar's lock; its coordinates are those of the local Maven repository."""
    (source,) = MAVEN_REPOSITORY.rglob(path.name)
    *group, artifact, version = source.relative_to(MAVEN_REPOSITORY).parts[:-1]
    return LockedArtifact(folder, path.name, ".".join(group), artifact, version, _sha256(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--lock", type=Path, default=LOCK)
    asked = parser.parse_args()
    update_lock(asked.folders, asked.lock)
