"""The request of a check: its JSON and its Standard Webhooks signature (docs/check-endpoint.md).

Every endpoint of the producer group has the secret and can verify the origin of a check. While a
rotated secret is still valid, both secrets sign. Pure: time and randomness are parameters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from standardwebhooks import Webhook

from outbox.checks.check_round import QueueRow
from outbox.checks.producer_group import ProducerGroup
from outbox.operators.message_view import header_values, text_or_base64
from outbox.telemetry.version import installed_version

USER_AGENT: Final = f"outbox-checker/{installed_version()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The body and the headers of one call, and the messages that it asks about, in order."""

    body: bytes
    headers: dict[str, str]
    message_ids: tuple[str, ...]
    batch: bool


def check_request(
    group: ProducerGroup,
    rows: Sequence[QueueRow],
    now: datetime,
    unique: str,
) -> CheckRequest:
    """Return the signed request for one half, or for several in the group's batch form.

    A single check continues the trace of its prepare, if that had one. Its webhook id is new for
    every attempt, also after a recheck. ``unique`` is 32 new
    hexadecimal digits: the webhook id of a batch, and the id of any other trace.
    """
    reply_by = now + timedelta(seconds=group.check_timeout_seconds)
    checks = [_check(group, row, reply_by) for row in rows]
    trace = None if group.batch_check else rows[0].readable.message.traceparent
    headers = {
        "user-agent": USER_AGENT,
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        "traceparent": trace or f"00-{unique}-{unique[:16]}-00",
    }
    if group.batch_check:
        webhook_id = f"chk_batch_{unique}"
        document = _envelope("transaction.check.batch", now, {"checks": checks})
    else:
        webhook_id = f"chk_{rows[0].readable.message_id}_{rows[0].round}_{rows[0].attempt}"
        document = _envelope("transaction.check", now, checks[0])
        headers["outbox-attempt"] = f"{rows[0].attempt}/{group.check_max}"
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    headers.update(_signed(group, webhook_id, now, body))
    return CheckRequest(
        body=body.encode(),
        headers=headers,
        message_ids=tuple(check["message_id"] for check in checks),
        batch=group.batch_check,
    )


def _envelope(kind: str, now: datetime, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "timestamp": _text(now), "data": data}


def _signed(group: ProducerGroup, webhook_id: str, now: datetime, body: str) -> dict[str, str]:
    signatures = [Webhook(secret).sign(webhook_id, now, body) for secret in group.secrets]
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _check(group: ProducerGroup, row: QueueRow, reply_by: datetime) -> dict[str, Any]:
    half = row.readable
    message = half.message
    check: dict[str, Any] = {
        "message_id": str(half.message_id),
        "transaction_id": message.transaction_id,
        "producer_group": group.name,
        "messages": 1 + len(half.followers),
        "topic": message.topic,
        **text_or_base64("key", message.key),
        "headers": header_values(message.headers),
        "attempt": row.attempt,
        "max_attempts": group.check_max,
        "prepared_at": _text(half.prepared_at),
        "reply_by": _text(reply_by),
    }
    return {**check, **text_or_base64("value", message.value)} if group.check_payload else check


def _text(at: datetime) -> str:
    """Return an RFC 3339 time in UTC, to the millisecond."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
