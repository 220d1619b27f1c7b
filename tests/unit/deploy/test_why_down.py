"""deploy/why-down.sh ends a `make up` that fails with what the failed services say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT

DOCKER = """#!/bin/sh
case "$*" in
    "compose ps --all --quiet") echo 1 2 ;;
    "inspect "*" 1 2") echo "$SERVICES" ;;
    "compose logs --tail=3 "*) echo "log of $4" ;;
esac
"""
"""Stands for the container engine."""


@pytest.mark.parametrize(
    ("services", "printed"),
    [
        ("migrate 0 0 \nlogins 0 0 \nkafka 0 0 unhealthy", "log of kafka\n"),
        ("migrate 6 0 \npostgres 0 2 healthy", "log of migrate\n"),
        ("kafka 0 0 starting\npostgres 0 2 starting", "log of postgres\n"),
        ("migrate 0 0 \napi 0 0 healthy", ""),
    ],
)
def test_only_the_services_that_failed_are_heard(
    tmp_path: Path, services: str, printed: str
) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    done = subprocess.run(
        [PROJECT / "deploy/why-down.sh"],
        env={"PATH": f"{tmp_path}:{os.defpath}", "SERVICES": services},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == printed
