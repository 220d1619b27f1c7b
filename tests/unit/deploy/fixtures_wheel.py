"""The wheel of a distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile


def build_wheel(project: Path, folder: Path) -> ZipFile:
    """Build a wheel without the network and open it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)
