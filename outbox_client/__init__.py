"""Send messages to Kafka if, and only if, your own database transaction commits.

A producer prepares a half message, runs its local transaction, then ends the message with COMMIT
or ROLLBACK (``TransactionProducer``). If the end never arrives, the service sends a check-back and
the producer answers it (``CheckEndpoint``). With a barrier row in the producer's database the
answer is definitive.
"""

from outbox_client.async_client import AsyncTransactionProducer
from outbox_client.checks.async_endpoint import AsyncCheckEndpoint
from outbox_client.checks.endpoint import CheckEndpoint
from outbox_client.checks.verdicts import Reply
from outbox_client.client import TransactionProducer
from outbox_client.errors import (
    AlreadyEnded,
    BadAnswer,
    DatabaseUnsupported,
    OutboxError,
    PrepareFailed,
    ServiceError,
    ServiceUnreachable,
    TransactionFenced,
)
from outbox_client.listener import (
    AsyncCheckListener,
    AsyncTransactionListener,
    Check,
    CheckListener,
    TransactionListener,
    Unknown,
)
from outbox_client.message import (
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    PreparedMessage,
    Publication,
    TransactionSendResult,
)

__all__ = [
    "AlreadyEnded",
    "AsyncCheckEndpoint",
    "AsyncCheckListener",
    "AsyncTransactionListener",
    "AsyncTransactionProducer",
    "BadAnswer",
    "Check",
    "CheckEndpoint",
    "CheckListener",
    "DatabaseUnsupported",
    "EndResult",
    "Ending",
    "LocalTransactionState",
    "Message",
    "OutboxError",
    "PrepareFailed",
    "PreparedMessage",
    "Publication",
    "Reply",
    "ServiceError",
    "ServiceUnreachable",
    "TransactionFenced",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "Unknown",
]
