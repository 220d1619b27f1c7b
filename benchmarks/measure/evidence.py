"""Keeps what a benchmark has reported as a page and as JSON, with the versions that it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure.machine import REPORTED
from chaos.run.code_version import code_version, commit_words, git_commit, versions


def keep(folder: Path, name: str, title: str) -> None:
    """Write ``<name>.md`` and ``<name>.json``."""
    command = " ".join(["python -m benchmarks.speed.checks", *sys.argv[1:]])
    found = {
        "profile": name,
        "command": command,
        "code_version": code_version(),
        "git": git_commit(),
        "versions": versions(),
        "results": REPORTED,
    }
    (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / f"{name}.md").write_text(_page(title, found))


def _page(title: str, found: dict[str, Any]) -> str:
    about = (
        f"`{found['command']}`. Kafka {found['versions']['kafka']}, code version "
        f"`{found['code_version']}`, {commit_words(found['git'])}."
    )
    rows = [
        f"| {each['benchmark']} | {name.replace('_', ' ')} | {value} |"
        for each in found["results"]
        for name, value in each.items()
        if name != "benchmark"
    ]
    return "\n".join(
        [f"# {title}", "", about, "", "| result | figure | |", "|---|---|---|", *rows, ""]
    )
