"""The catalogue of log events, and the setup of logging."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Collection
from enum import StrEnum
from traceback import format_tb
from types import TracebackType
from typing import Any, Final, Literal

import structlog

from outbox.telemetry.redaction import Redaction, redaction

_TRACE: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class Event(StrEnum):
    """The log events: one per change of state, none per poll."""

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
    """Kafka refuses a record, or its stored row is damaged."""
    RECORD_HELD = "record_held"
    """A refused record is held with its scope."""
    PRODUCER_DROPPED = "producer_dropped"
    """The relay gives up a Kafka producer, because its transaction is in doubt."""
    RELAY_REFUSED = "relay_refused"
    """The relay does not start, because a server setting is unsafe."""
    RELAY_FENCED = "relay_fenced"
    """Another relay has taken the shard over."""
    TOPIC_GREW = "topic_grew"
    """A topic has more partitions: order across this change is not promised."""
    PERMISSION_MISSING = "permission_missing"
    """The checker's principal lacks a right in Kafka."""
    TOPIC_REFUSED = "topic_refused"
    """Kafka refuses to create a topic; each cause is logged once."""
    RELAY_HALTED = "relay_halted"
    """A shard waits for an operator."""
    HISTORY_RECOVERED = "history_recovered"
    """Kafka had messages that PostgreSQL had lost; PostgreSQL knows them again."""
    DEPENDENCY_LOST = "dependency_lost"
    """PostgreSQL or Kafka does not answer."""
    DEPENDENCY_BACK = "dependency_back"
    DATABASE_REFUSED = "database_refused"
    """PostgreSQL refuses what requests need: a right is missing, or a trigger of a stranger."""
    SERVER_UNSAFE = "server_unsafe"
    """PostgreSQL is back with an unsafe setting and is not used."""
    DEFAULT_LEAF_USED = "default_leaf_used"
    """Rows are in a default leaf, outside every planned partition."""
    CLOCK_JUMPED = "clock_jumped"
    """PostgreSQL's clock was set: ages and retention are wrong by as much."""
    SECRET_UNREADABLE = "secret_unreadable"
    """No encryption key opens the check secret of a group, so no check of it is sent."""
    STEP_FAILED = "step_failed"
    """One step of a task failed; the task continues."""
    TABLE_GAUGES_UNREAD = "table_gauges_unread"
    """A part of the gauges from the tables cannot be read; the others are shown."""
    INTERNAL_ERROR = "internal_error"
    """A request, a thread or the process failed by a defect."""
    STARTED = "started"
    STOPPED = "stopped"
    """The process ends."""
    LEAF_RETIRED = "leaf_retired"
    LEAF_WAITS = "leaf_waits"


class _LibraryLines(logging.Formatter):
    """The lines of libraries, with our form of exceptions and without secrets."""

    def __init__(self, redact: Redaction) -> None:
        super().__init__("%(levelname)s:%(name)s:%(message)s")
        self._redact = redact

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Return the traceback of an error and its causes."""
        return exception_format(ei)

    def format(self, record: logging.LogRecord) -> str:
        """Return a line without secrets."""
        return self._redact(super().format(record))


def log_style() -> Literal["json", "console"]:
    """Return `console` for a person at a terminal, otherwise `json`."""
    return "console" if sys.stderr.isatty() else "json"


def configure_logging(
    level: str, style: Literal["json", "console"], secrets: Collection[str] = ()
) -> None:
    """Write one structured line per event to stderr; library logs below warning are dropped.

    None of ``secrets`` is in a line, and nothing that has the form of a secret.
    """
    redact = redaction(secrets)
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
            lambda _, __, line: redact(str(line)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(_LibraryLines(redact))
    logging.basicConfig(handlers=[lines], level=logging.WARNING)


def log_uncaught_errors() -> None:
    """Write an error that ends this process or a thread as a log line, not as a bare traceback.

    A hook that somebody else has set stays.
    """

    def write(kind: type[BaseException], error: BaseException | None, trace: Any) -> None:
        get_logger().critical(Event.INTERNAL_ERROR, exc_info=(kind, error, trace))

    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = write
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = lambda thread: write(*thread[:3])


def get_logger() -> Any:
    """Return the logger; call ``log.info(Event.X, fact=…)``."""
    return structlog.get_logger()


def trace_facts(traceparent: str | None) -> dict[str, str]:
    """Return the fact ``trace_id`` of a message's log line; nothing without a trace context."""
    found = _TRACE.fullmatch(traceparent) if traceparent else None
    return {"trace_id": found[1]} if found else {}


def exception_format(
    exc_info: tuple[type[BaseException], BaseException, TracebackType | None],
) -> str:
    """Return the traceback of an error and of its causes, the first cause first.

    PostgreSQL adds a DETAIL to some errors that quotes the row with its payload. Only the first
    line is kept, which names tables and rules.
    """
    parts: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        place = "".join(format_tb(error.__traceback__))
        inner = [
            exception_format((type(each), each, None)) for each in getattr(error, "exceptions", ())
        ]
        parts.append("\n".join([f"{place}{type(error).__name__}: {_words(error)}", *inner]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(reversed(parts))


def _words(error: BaseException) -> str:
    diagnosis = getattr(error, "diag", None)
    if diagnosis is None or not getattr(diagnosis, "message_primary", None):
        return str(error)
    return f"{diagnosis.message_primary} ({diagnosis.sqlstate})"
