"""The cells of the table: which release, which tests, and how to run them on it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devservers.artifacts import KAFKA_RELEASES, RUNTIME, kafka_version
from devservers.unprivileged import reachable, unprivileged_user
from tests.compatibility.python_environment import make_environment

POSTGRES_RELEASES = ("15.18.0", "16.14.0", "17.10.0")
"""The embedded PostgreSQL of pom.xml is the newest one; `postgres_releases.xml` fetches these."""
PYTHONS = ("3.12", "3.13", "3.14")
SUITES = {
    "PostgreSQL": (
        "tests/contract",
        "tests/integration/postgres",
        "tests/integration/checker/maintenance",
    ),
    "Kafka": (
        "tests/contract/test_publisher.py",
        "tests/contract/test_topic_catalogue.py",
        "tests/integration/kafka",
        "tests/integration/checker/relay",
    ),
    "Python": (
        "tests/unit/outbox",
        "tests/unit/outbox_client",
        "tests/contract",
        "tests/integration/client",
    ),
}
ALL_TESTS = "every test (`make test`, `make test-deep`)"
USUAL_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One release; ``usual`` is the one that every other test runs on."""

    product: str
    release: str
    usual: bool = False

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"{self.product.lower()}-{self.release}"


def cells() -> Iterator[Cell]:
    """Yield every cell of the table, in its order."""
    for release in POSTGRES_RELEASES:
        yield Cell(product="PostgreSQL", release=release)
    yield Cell(product="PostgreSQL", release=usual_postgres(), usual=True)
    usual = kafka_version()
    for release in sorted((*KAFKA_RELEASES, usual)):
        yield Cell(product="Kafka", release=release, usual=release == usual)
    yield Cell(product="Python", release=USUAL_PYTHON, usual=True)
    for release in PYTHONS:
        yield Cell(product="Python", release=release)


def usual_postgres() -> str:
    """Return the version of the embedded PostgreSQL."""
    jar = next((RUNTIME / "postgres").glob("*.jar"))
    return jar.stem.rpartition("-")[2]


def missing(cell: Cell) -> str | None:
    """Return why a cell cannot run here, or None."""
    if cell.product == "Kafka" and not kafka_version(cell.release):
        return f"not fetched here: `make kafka KAFKA={cell.release}`"
    if cell.product == "PostgreSQL" and not postgres_bin(cell.release).is_dir():
        return "not fetched here: `python -m tests.compatibility --fetch`"
    if cell.product == "Python" and interpreter(cell.release) is None:
        return f"no `python{cell.release}` that starts on the search path"
    return None


def postgres_bin(release: str) -> Path:
    """Return the folder of the programs of a fetched PostgreSQL."""
    folder = reachable(fetched_folder(release), unprivileged_user())
    return folder / f"linux-amd64-{release}" / "bin"


def fetched_folder(release: str) -> Path:
    """Return the folder of a fetched PostgreSQL's archive."""
    return RUNTIME / f"postgres-{release}"


def interpreter(release: str) -> str | None:
    """Return a Python that starts: a name on the search path may be an empty shim."""
    found = shutil.which(f"python{release}")
    if found is None:
        return None
    asked = [found, "-c", "import sys, venv; print(sys.prefix)"]
    return found if subprocess.run(asked, capture_output=True).returncode == 0 else None


def command(cell: Cell, scratch: Path) -> Sequence[str]:
    """Return the command that runs the tests of a cell."""
    python = sys.executable
    options: list[str] = []
    if cell.product == "PostgreSQL":
        options = ["--postgres-bin", str(postgres_bin(cell.release))]
    elif cell.product == "Kafka":
        options = ["--kafka-release", cell.release]
    else:
        python = str(make_environment(str(interpreter(cell.release)), scratch / cell.release))
    return [
        *(python, "-m", "pytest", "-q", "-m", "not deep", "-p", "no:cacheprovider"),
        *options,
        *SUITES[cell.product],
    ]
