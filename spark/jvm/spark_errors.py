"""Turns exceptions of Spark into one line and the right exit code, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from outbox.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    KafkaUnavailable,
    RunOvertaken,
)

ERROR: Final = 1
USAGE: Final = 2
OVERTAKEN: Final = 5
UNREACHABLE: Final = 6
INTERRUPTED: Final = 130

UNREACHABLE_SIGNS: Final = (
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.common.errors.DisconnectException",
    "Failed to construct kafka consumer",
    "Connection refused",
    "The connection attempt failed",
    "An I/O error occurred while sending to the backend",
    "terminating connection due to administrator command",
    "due to conflict with recovery",
)
"""Texts of the connectors if a store became unreachable, or a replica cancelled the query."""
LINE: Final = 300


class SparkFailure(Exception):
    """A Spark job failed; the message is one line, the details are in the log file."""

    def __init__(self, line: str, *, unreachable: bool) -> None:
        super().__init__(line)
        self.unreachable = unreachable


@contextmanager
def one_line_failures(log_file: object) -> Iterator[None]:
    """Raise SparkFailure for every exception of Spark within the block."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        sign = next((each for each in UNREACHABLE_SIGNS if each in text), None)
        cause = sign or last_cause(text)
        raise SparkFailure(
            f"Spark: {cause[:LINE]} (see {log_file})", unreachable=sign is not None
        ) from error


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error; 1 for an error without a specific code."""
    match error:
        case ConfigurationError():
            return USAGE
        case RunOvertaken():
            return OVERTAKEN
        case DatabaseUnavailable() | KafkaUnavailable() | SparkFailure(unreachable=True):
            return UNREACHABLE
        case _:
            return ERROR


def last_cause(text: str) -> str:
    """Return the innermost cause that a Java stack trace names, else its first line."""
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else text.strip().splitlines()[0]
