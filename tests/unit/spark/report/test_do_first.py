"""The command beside a finding can be run unchanged."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer

from cli.app import make_app
from spark.findings.finding_class import Cause
from spark.report.do_first import command
from tests.unit.spark.fixtures_reports import make_finding

NOTHING_KNOWN = {"half_id": None, "message_id": None, "topic": None, "shard": None}


@pytest.mark.parametrize("cause", list(Cause))
def test_a_command_names_no_fact_that_the_finding_has_not(cause: Cause) -> None:
    whole = make_finding(cause=cause)
    for missing in ({}, {"message_id": None}, {"topic": None}, NOTHING_KNOWN):
        found = command(replace(whole, **missing), "run-7")  # type: ignore[arg-type]
        assert "None" not in found
        assert "{" not in found


@pytest.mark.parametrize("cause", list(Cause))
def test_a_command_has_every_argument_that_it_needs(cause: Cause) -> None:
    finding = make_finding(cause=cause, partition=0, evidence={"pid": 7})
    program, *words = shlex.split(command(finding, "run-7"))
    if program == "outbox":
        asked: Any = typer.main.get_command(make_app())
        while hasattr(asked, "commands"):
            asked = asked.commands[words.pop(0)]
        asked.make_context(cause.value, words)
    else:
        assert program == "psql" or "--bootstrap-server" in words


def test_a_finding_without_its_message_asks_who_may_write_to_the_topic() -> None:
    finding = make_finding(cause=Cause.ORPHAN_UNKNOWN)
    assert command(finding, "run-7") == f"outbox message show {finding.message_id}"
    unnamed = replace(finding, message_id=None)
    asked = command(unnamed, "run-7")
    assert asked.startswith("kafka-acls.sh ")
    assert asked.endswith(f" --list --topic {finding.topic}")
    assert command(replace(unnamed, topic=None), "run-7") == "outbox reconcile show run-7"
