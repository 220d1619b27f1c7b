"""Gives a version to everything that names one: ``python deploy/release.py 0.2.0``.

The version of the service is the one in `pyproject.toml`. The client, the harness, the images and
the pages follow it, and what `CHANGELOG.md` has not released yet gets its heading. A test compares
them all. What it changed is for a commit and a tag of their own. It also writes the bill of
materials, `dist/outbox-0.2.0.cdx.json`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
BILL_OF_MATERIALS = PROJECT / "deploy" / "bill_of_materials.py"
PROJECTS = ("pyproject.toml", "outbox_client/pyproject.toml", "chaos/pyproject.toml")
NAMING = (
    "docker-compose.yml",
    "deploy/**/*.yml",
    "deploy/**/Dockerfile",
    "deploy/**/*.md",
    "docs/*.md",
)
UNRELEASED = "## [Unreleased]"
_NUMBER = r"\d+\.\d+\.\d+"
_VERSION = re.compile(_NUMBER)
_IN_PROJECT = re.compile(rf'^(version = "){_NUMBER}(")$', re.MULTILINE)
_IN_TEXT = re.compile(rf"\b(outbox(?:-spark|-demo|-checker)?[:/]|outbox(?:_client)?-){_NUMBER}\b")


def main(arguments: list[str], project: Path = PROJECT, today: str | None = None) -> int:
    """Write the version; refuse one that is below the present one, or was released before."""
    refusal = _refusal(arguments, project)
    if refusal is not None:
        sys.stderr.write(f"{refusal}\n")
        return 2
    (version,) = arguments
    _write_bill_of_materials(project / "dist", version)
    for file in files(project):
        text = file.read_text("utf-8")
        pattern = _IN_PROJECT if file.suffix == ".toml" else _IN_TEXT
        file.write_text(pattern.sub(lambda found: _replaced(found, version), text), "utf-8")
    _close_changelog(
        project / "CHANGELOG.md", version, today or time.strftime("%Y-%m-%d", time.gmtime())
    )
    return 0


def version_of(project: Path) -> str:
    """Return the version of the service."""
    settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    return str(settings["project"]["version"])


def files(project: Path) -> Iterator[Path]:
    """Yield every file that names the version."""
    yield from (project / name for name in PROJECTS)
    for pattern in NAMING:
        yield from sorted(project.glob(pattern))


def named(file: Path) -> set[str]:
    """Return the versions of the outbox that a file names."""
    pattern = _IN_PROJECT if file.suffix == ".toml" else _IN_TEXT
    found = (match[0] for match in pattern.finditer(file.read_text("utf-8")))
    return {number for text in found for number in _VERSION.findall(text)}


def _refusal(arguments: list[str], project: Path) -> str | None:
    if len(arguments) != 1 or not _VERSION.fullmatch(arguments[0]):
        return "usage: python deploy/release.py 0.2.0"
    (version,) = arguments
    present = version_of(project)
    if _numbers(version) < _numbers(present):
        return f"{version} is below the present version {present}"
    if f"## [{version}]" in (project / "CHANGELOG.md").read_text("utf-8"):
        return f"{version} was released before"
    return None


def _replaced(found: re.Match[str], version: str) -> str:
    return _VERSION.sub(version, found[0])


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _close_changelog(changelog: Path, version: str, today: str) -> None:
    """Give the unreleased part its heading, and open an empty one above it."""
    text = changelog.read_text("utf-8")
    released = f"{UNRELEASED}\n\n## [{version}] - {today}"
    changelog.write_text(text.replace(UNRELEASED, released, 1), "utf-8")


def _write_bill_of_materials(folder: Path, version: str) -> None:
    """Write what the release runs; it needs the packages of the project, so it comes first."""
    folder.mkdir(exist_ok=True)
    with (folder / f"outbox-{version}.cdx.json").open("w") as file:
        subprocess.run([sys.executable, BILL_OF_MATERIALS, version], stdout=file, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
