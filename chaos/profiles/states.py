"""The states of the protocol that profiles must reach, as the judge counts them."""

from __future__ import annotations

from typing import Final

DECISIONS: Final = ("COMMIT", "ROLLBACK")
ENDED_BOTH_WAYS: Final = (
    *("entry published", "manifest of kind batch", "owner that published", "prepare refused"),
    *(f"decided by {who}: {what}" for who in ("producer", "check") for what in DECISIONS),
)
EACH_KILLED: Final = tuple(f"{role} killed" for role in ("api", "checker", "client", "endpoint"))
RETIRED: Final = ("leaf retired", "message retired with its leaf")
REFUSED: Final = (
    *("entry held", "manifest of kind release"),
    *("fault refuse_size", "fault refuse_write", "fault refuse_topic"),
)
HALTED: Final = ("fault other_database", "halt resolved: database_changed")
LOST_TAIL: Final = (
    *("learnt from Kafka: orphan", "learnt from Kafka: PostgreSQL had lost the decision"),
    "entry published before",
)
"""HISTORY: PostgreSQL lost what Kafka has, with and without the half message."""
