"""An environment for another Python: the locked packages, without Spark's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.fixtures_paths import PROJECT

REQUIREMENTS = PROJECT / "requirements"
_PIN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==", re.MULTILINE)


def make_environment(interpreter: str, folder: Path) -> Path:
    """Install into a new environment; return its Python."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = folder / "wanted.txt"
    wanted.write_text("\n".join(sorted(packages())) + "\n", "utf-8")
    lock = str(REQUIREMENTS / "dev.txt")
    subprocess.run([*pip, "--only-binary", ":all:", "-c", lock, "-r", str(wanted)], check=True)
    editable = [
        "--no-deps",
        "--no-build-isolation",
        "-e",
        str(PROJECT),
        "-e",
        str(PROJECT / "chaos"),
    ]
    subprocess.run([*pip, *editable], check=True)
    return python


def packages() -> set[str]:
    """Return the locked packages but those that only Spark needs."""
    locks = {name: set(_PIN.findall((REQUIREMENTS / name).read_text("utf-8"))) for name in _LOCKS}
    return locks["dev.txt"] - (locks["spark.txt"] - locks["base.txt"])


_LOCKS = ("base.txt", "spark.txt", "dev.txt")
