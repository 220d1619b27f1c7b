"""docs/audit.md shows every option of the commands, and a valid rule."""

from __future__ import annotations

import json
import re

import pytest

from spark.__main__ import main
from spark.findings.topic_rules import rule_of, topic_rules
from tests.fixtures_paths import PROJECT

DOCS = PROJECT / "docs"
PAGE = (DOCS / "audit.md").read_text("utf-8")
NOT_SHOWN = {"--help", "--output"}


def shown(command: str) -> set[str]:
    """Return the options in the usage lines of a command."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return {
        option for text in blocks if command in text for option in re.findall(r"--[\w-]+", text)
    }


def test_the_page_shows_every_option_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    options = set(re.findall(r"--[a-z][\w-]*", capsys.readouterr().out))
    assert options - NOT_SHOWN <= shown("outbox reconcile run")


def test_the_rule_that_is_shown_is_understood() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    rules = topic_rules(json.loads(text))
    assert not rule_of("metrics", rules).ordered
    assert rule_of("invoices.issued", rules).ordered
