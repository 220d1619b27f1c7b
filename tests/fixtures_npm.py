"""Packages of npm that a few tests need, installed as locked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

INSTALL_SECONDS: Final = 300
INSTALL: Final = ("npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")


def install_locked(lock: Path, folder: Path) -> Path:
    """Install what the lock in one folder names into another; return its packages, or skip."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not on this machine")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(lock / name, folder)
    subprocess.run(INSTALL, cwd=folder, timeout=INSTALL_SECONDS, check=True)
    return folder / "node_modules"
