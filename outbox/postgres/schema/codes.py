"""The two-byte codes for the words of an op message."""

from __future__ import annotations

from typing import Final

from outbox.messages.message import DecidedBy, Resolution

DECISION_CODE: Final[dict[Resolution, int]] = {Resolution.COMMIT: 1, Resolution.ROLLBACK: 2}
DECISION_OF_CODE: Final = {code: decision for decision, code in DECISION_CODE.items()}

DECIDED_BY_CODE: Final[dict[DecidedBy, int]] = {
    DecidedBy.PRODUCER: 1,
    DecidedBy.CHECK: 2,
    DecidedBy.OPERATOR: 3,
    DecidedBy.POLICY: 4,
    DecidedBy.RECOVERY: 5,
}
DECIDED_BY_OF_CODE: Final = {code: decided_by for decided_by, code in DECIDED_BY_CODE.items()}
