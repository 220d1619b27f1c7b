"""The rule of each cause, for the report, the documentation and the exit code: ``rules.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from spark.findings.finding_class import Cause, Kind, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The meaning of a cause for an operator. ``partial``: a run did not see all of its plan."""

    kind: Kind
    severity: Severity
    meaning: str
    action: str
    command: str
    partial: bool = False


def read_rules() -> dict[Cause, Rule]:
    """Return the rule of each cause."""
    tables = tomllib.loads((files("spark.findings") / "rules.toml").read_text("utf-8"))
    return {Cause(name): _rule(table) for name, table in tables.items()}


def _rule(table: Mapping[str, Any]) -> Rule:
    kind, severity = Kind(table["kind"]), Severity[table["severity"].upper()]
    return Rule(**{**table, "kind": kind, "severity": severity})


RULES: Final = read_rules()
