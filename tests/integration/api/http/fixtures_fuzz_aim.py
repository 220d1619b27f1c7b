"""Aims half of the generated requests: a well-formed group or topic becomes one that exists.

Names generated from their patterns belong to no group, so nearly every prepare would be refused as
`unknown-group`. A name that breaks its pattern is kept, because it must be refused.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from zlib import crc32

import schemathesis

from api.ingest.schemas import GROUP_PATTERN, TOPIC_PATTERN
from tests.integration.api.fixtures_service import GROUP, TOPIC

AIMS: Final = {"producer_group": (GROUP_PATTERN, GROUP), "topic": (TOPIC_PATTERN, TOPIC)}


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case[Any], __: Any) -> None:
    """Aim the body of every second call, chosen by its content, so a seed is reproducible."""
    if isinstance(case.body, dict) and crc32(json.dumps(case.body, default=str).encode()) % 2:
        case.body = aimed(case.body)


def aimed(value: Any) -> Any:
    """Return the value with every well-formed group and topic in it replaced."""
    if isinstance(value, list):
        return [aimed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _aimed_member(name, member) for name, member in value.items()}


def _aimed_member(name: str, member: Any) -> Any:
    pattern, target = AIMS.get(name, ("", ""))
    if pattern and isinstance(member, str) and re.fullmatch(pattern, member):
        return target
    return aimed(member)
