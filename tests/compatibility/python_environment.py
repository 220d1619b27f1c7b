"""An environment for another Python: the locked packages, without Spark's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.fixtures_paths import PROJECT

REQUIREMENTS = PROJECT / "requirements"
SPARK = {"pyspark", "py4j", "pandas", "pyarrow", "numpy", "grpcio", "grpcio-status"}
"""Spark has no wheel, and no test of these suites uses it or what it brings."""
_PIN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==.*\n(?:[ \t].*\n)*", re.MULTILINE)


def make_environment(interpreter: str, folder: Path) -> Path:
    """Install into a new environment; return its Python."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = folder / "wanted.txt"
    wanted.write_text(lock(), "utf-8")
    subprocess.run([*pip, "--no-deps", "--only-binary", ":all:", "-r", str(wanted)], check=True)
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


def lock() -> str:
    """Return the lock, with its hashes, without the packages that only Spark needs."""
    locked = (REQUIREMENTS / "dev.txt").read_text("utf-8")
    return "".join(pin[0] for pin in _PIN.finditer(locked) if pin[1] not in SPARK)
