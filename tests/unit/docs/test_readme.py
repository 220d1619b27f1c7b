"""The README shows the demo as it is; tests/e2e/pages/test_readme.py runs its commands."""

from __future__ import annotations

import re

from tests.fixtures_paths import PROJECT

PAGE = (PROJECT / "README.md").read_text("utf-8")
ACTS = re.findall(r"^Act \d\. (\D+?)  \d+ s$", PAGE, re.MULTILINE)
TARGETS = re.findall(r"^\| `make ([\w-]+)` \|", PAGE, re.MULTILINE)


def test_every_act_that_is_shown_is_in_the_demo() -> None:
    demo = "".join(path.read_text("utf-8") for path in (PROJECT / "examples/demo").glob("*.py"))
    assert ACTS
    assert [act for act in ACTS if f'"{act}"' not in demo] == []


def test_every_command_that_is_named_is_a_target_of_make() -> None:
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    assert TARGETS == ["demo", "test"]
    assert all(f"\n{target}: " in makefile for target in TARGETS)
