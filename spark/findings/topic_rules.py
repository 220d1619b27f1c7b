"""The rules that operators set for a topic, or for all topics with a prefix. Pure.

``{"invoices.": {"ordered": false, "severity": {"LOST": "high"}}}``: if
several names match a topic, only the rule of the longest name applies. The rules are applied once,
before a finding is entered. The checks that produce findings do not know them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from msgspec import Struct, ValidationError, convert

from outbox.errors import ConfigurationError
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Kind, Severity, causes_named

REPAIRABLE: Final = (Kind.MISSING, Kind.MISMATCH)
DRIFT: Final = "outbox_batch"
"""The evidence of POSITION_DRIFT, which a finding of ORDER_INVERSION may contain too."""
Level = Literal["info", "low", "medium", "high", "critical"]


class TopicRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule for judging a topic; the members are those of the setting."""

    ordered: bool = True
    """The order of a key's records is judged, and prevents publishing one again."""
    foreign: Literal["off", "low", "high"] = "off"
    """The severity of records of other writers, or that they are permitted."""
    partitioner: Literal["murmur2", "any"] = "murmur2"
    """Whether a key determines the partition of its records."""
    severity: dict[str, Level] = {}
    """By class or cause."""

    def __post_init__(self) -> None:
        for name in self.severity:
            if not causes_named(name):
                raise ValueError(f"severity of {name!r}, which is not a class")

    def severity_of(self, cause: Cause) -> Severity | None:
        """Return the severity of a cause in this topic; None is the severity by its own rule.

        That of a cause goes before that of its class.
        """
        own = self.foreign if cause is Cause.FOREIGN_RECORD else "off"
        level = self.severity.get(cause, self.severity.get(cause.finding_class, own))
        return None if level == "off" else Severity[level.upper()]


TopicRules = Mapping[str, TopicRule]
"""Rules by topic or prefix."""

DEFAULT_RULE: Final = TopicRule()


def topic_rules(given: Mapping[str, Any]) -> TopicRules:
    """Return the rules. Raises ConfigurationError that names the invalid part."""
    return {name: _rule(name, rule) for name, rule in given.items()}


def rule_of(topic: str | None, rules: TopicRules) -> TopicRule:
    """Return the rule of a topic; without a topic the default rule applies."""
    fitting = [name for name in rules if topic is not None and topic.startswith(name)]
    return rules[max(fitting, key=len)] if fitting else DEFAULT_RULE


def apply_topic_rule(
    finding: Finding, rules: TopicRules, compacted: Collection[str] = frozenset()
) -> Finding | None:
    """Return a finding after the rule of its topic, or None if the rule removes it.

    A repairable finding gets ``"ordered": false`` if its order does not matter: the rule does not
    require order, and the topic is not ``compacted``.
    """
    rule = rule_of(finding.topic, rules)
    judged = _judged(finding, rule)
    if judged is None:
        return None
    free = not rule.ordered and judged.topic not in compacted
    noted = {"ordered": False} if free and judged.rule.kind in REPAIRABLE else {}
    severity = rule.severity_of(judged.cause)
    return replace(judged, given_severity=severity, evidence={**judged.evidence, **noted})


def _judged(finding: Finding, rule: TopicRule) -> Finding | None:
    """Return the rest of a finding: itself, a lesser fault of the same message, or None."""
    if finding.cause is Cause.FOREIGN_RECORD and rule.severity_of(finding.cause) is None:
        return None
    if finding.cause is not Cause.ORDER_INVERSION_KEY or rule.ordered:
        return finding
    if DRIFT not in finding.evidence:
        return None
    drift = {DRIFT: finding.evidence[DRIFT]}
    return replace(finding, cause=Cause.POSITION_DRIFT_HEADER, evidence=drift)


def _rule(name: str, given: Any) -> TopicRule:
    try:
        return convert(given, TopicRule)
    except ValidationError as error:
        line = f"OUTBOX_RECONCILE_TOPIC_RULES: {name!r}: {error} (see docs/audit.md)"
        raise ConfigurationError(line) from None
