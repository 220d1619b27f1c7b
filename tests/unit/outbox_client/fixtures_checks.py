"""Signed checks, built from the contract and not by our code."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from time import time

GROUP = "billing"
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()
MESSAGE_ID = "0f6c1c0e-8d0b-4c55-9a54-6f2b7c1d9e10"
SENT_AT = datetime(2026, 9, 21, 14, 14, 2, tzinfo=UTC)


def make_check(message_id: object = MESSAGE_ID, **changes: object) -> dict[str, object]:
    reply_by = SENT_AT + timedelta(seconds=5)
    return {
        "message_id": message_id,
        "transaction_id": "invoice-7731",
        "producer_group": GROUP,
        "topic": "invoices.issued",
        "key": "cust-58",
        "headers": {"tenant": "north", "schema": {"base64": "/w=="}, "none": None},
        "attempt": 2,
        "max_attempts": 15,
        "prepared_at": "2026-09-21T14:13:26Z",
        "reply_by": reply_by.isoformat(),
    } | changes


def single(check: dict[str, object] | None = None) -> bytes:
    data = make_check() if check is None else check
    envelope = {"type": "transaction.check", "timestamp": SENT_AT.isoformat(), "data": data}
    return json.dumps(envelope).encode()


def batch(*checks: dict[str, object]) -> bytes:
    data = {"checks": list(checks)}
    envelope = {"type": "transaction.check.batch", "timestamp": SENT_AT.isoformat(), "data": data}
    return json.dumps(envelope).encode()


def signature(body: bytes, webhook_id: str, timestamp: int, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(
    body: bytes, *secrets: str, age_seconds: int = 0, webhook_id: str = f"chk_{MESSAGE_ID}_1_2"
) -> dict[str, str]:
    timestamp = int(time()) - age_seconds
    signatures = [signature(body, webhook_id, timestamp, secret) for secret in secrets or (SECRET,)]
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
        "content-type": "application/json",
    }
