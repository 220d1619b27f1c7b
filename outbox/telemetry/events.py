"""Every log event, once, and how logging is set up."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import Any, Literal

import structlog

from outbox.telemetry.exception_format import exception_format


class Event(StrEnum):
    """The log events; one for a change of state, none for a poll."""

    HALF_PREPARED = "half_prepared"
    HALF_ENDED = "half_ended"
    HALF_PARKED = "half_parked"
    HALF_PUBLISHED = "half_published"
    CHECK_DONE = "check_done"
    CHECK_BLOCKED = "check_blocked"
    BREAKER_CHANGED = "breaker_changed"
    GROUP_CHANGED = "group_changed"
    OPERATOR_ACTION = "operator_action"
    KEY_CHANGED = "key_changed"
    PUBLISH_FAILED = "publish_failed"
    RELAY_REFUSED = "relay_refused"
    DEPENDENCY_LOST = "dependency_lost"
    DEPENDENCY_BACK = "dependency_back"
    STARTED = "started"
    STOPPED = "stopped"
    LEAF_RETIRED = "leaf_retired"
    LEAF_WAITS = "leaf_waits"


def configure_logging(level: str, style: Literal["json", "console"]) -> None:
    """Send one structured line an event to stderr; library logs below warning stay silent."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
            structlog.processors.ExceptionRenderer(exception_format),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)


def get_logger() -> Any:
    """Return the logger; call ``log.info(Event.X, fact=…)``."""
    return structlog.get_logger()


def debug_logger() -> Any | None:
    """Return the logger where debug lines are written, else None: then nothing need be told."""
    logger = get_logger()
    return logger if logger.is_enabled_for(logging.DEBUG) else None
