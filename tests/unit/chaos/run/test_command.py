"""The command judges runs only; evidence is made by one command, its table says of what."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chaos.profiles.catalogue import PROFILES
from chaos.run.code_version import code_version
from chaos.run.command import check_again
from cli.invocation.exit_codes import CommandFailed, ExitCode
from devservers.artifacts import PROJECT_ROOT

EVIDENCE = PROJECT_ROOT / "docs" / "evidence"
JSON_PAGES = [page for page in sorted(EVIDENCE.glob("*.json")) if page.with_suffix(".md").exists()]


def test_a_folder_that_is_no_run_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(
        CommandFailed, match=r"has no run\.json; name the folder of one run"
    ) as ended:
        check_again(tmp_path)
    assert ended.value.exit_code == ExitCode.NOT_FOUND
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_the_profiles_of_make_evidence_exist() -> None:
    (names,) = re.findall(r"^PROFILES \?= (.*)$", (PROJECT_ROOT / "Makefile").read_text(), re.M)
    assert set(names.split()) <= PROFILES.keys()
    assert {"kill", "mixed", "alone", "frames", "failover", "long"} <= set(names.split())


def test_the_evidence_page_lists_only_what_make_evidence_runs() -> None:
    makefile = (PROJECT_ROOT / "Makefile").read_text()
    recipe = makefile.partition("\nevidence:")[2].partition("\n\n")[0]
    block = (EVIDENCE / "README.md").read_text().split("```")[1]
    listed = [line for line in block.splitlines() if line.startswith("python -m ")]
    run = [line for line in listed if re.search(rf"{re.escape(line)}( |$)", recipe, re.MULTILINE)]
    assert listed == run != []


@pytest.mark.parametrize("page", JSON_PAGES, ids=lambda page: page.stem)
def test_the_table_of_evidence_names_kafka_and_code_of_each_result(page: Path) -> None:
    found: dict[str, Any] = json.loads(page.read_text())
    lines = (EVIDENCE / "README.md").read_text().splitlines()
    row = next(line for line in lines if line.endswith(f"[{page.stem}.md]({page.stem}.md) |"))
    assert f"| {found['versions']['kafka']} | `{found['code_version']}` |" in row


def test_the_code_version_is_that_of_the_files_and_not_of_the_commit() -> None:
    assert re.fullmatch("[0-9a-f]{16}", code_version())
    assert code_version() == code_version()
