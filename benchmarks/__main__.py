"""Runs every benchmark, one after the other, each in its own process."""

from __future__ import annotations

import subprocess
import sys

QUESTIONS = ("benchmarks.service", "benchmarks.relay", "benchmarks.checks", "benchmarks.reconcile")


def main() -> int:
    """Return the first exit code that is not 0."""
    for question in QUESTIONS:
        code = subprocess.run([sys.executable, "-m", question], check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
