"""Posts an event to an operator's endpoint, signed by Standard Webhooks.

It passes the same guard as a check: judged address, no redirect, no proxy from the environment.
Its id is the same in all attempts, so a receiver recognizes a repetition.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from standardwebhooks import Webhook

from outbox.checks.ssrf_guard import read_check_url
from outbox.clock import Clock
from outbox.errors import CheckUrlForbidden, ConfigurationError
from outbox.http_checks.endpoint import guarded_session
from outbox.http_checks.guarded_connector import Blocked, GuardedResolver

WAITS: Final = (1.0, 5.0)
"""Seconds before the second and the third attempt."""
TIMEOUT_SECONDS: Final = 10.0
SECRET_PREFIX: Final = "whsec_"
NO_GROUP: Final = 0
"""Look-ups of the operator's endpoint belong to no producer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An event: its own id, a type, and facts without any key or value."""

    notice_id: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeResult:
    """The result of a post; ``outcome`` is the last status, or the reason why there was none."""

    delivered: bool
    outcome: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """The target of notices, and the secret that signs them."""

    url: str = field(repr=False)
    secret: str = field(repr=False)
    resolver: GuardedResolver
    proxy_url: str | None = field(default=None, repr=False)
    waits: tuple[float, ...] = WAITS

    def validated(self) -> WebhookTarget:
        """Return the target itself. Raises ConfigurationError if no notice can ever reach it."""
        try:
            read_check_url(self.url, self.resolver.policy)
            _verify_secret(self.secret)
        except CheckUrlForbidden as refused:
            raise ConfigurationError(f"the webhook's URL is refused: {refused.rule}") from None
        except ValueError:
            line = f"the webhook's secret is not {SECRET_PREFIX} and base64 of 24 to 64 bytes"
            raise ConfigurationError(line) from None
        return self


async def post_notice(target: WebhookTarget, notice: Notice, clock: Clock) -> NoticeResult:
    """Post a notice until it is accepted (2xx) or no attempt is left; never raises for HTTP."""
    proxied = target.proxy_url is not None
    async with guarded_session(target.resolver, proxied=proxied) as session:
        for attempt, wait in enumerate((*target.waits, None), 1):
            outcome = await _post(session, target, notice, clock)
            delivered = outcome.startswith("2")
            if delivered or wait is None or outcome in ("blocked", "410"):
                return NoticeResult(delivered=delivered, outcome=outcome, attempts=attempt)
            await asyncio.sleep(wait)
    raise AssertionError("unreachable")


async def _post(
    session: aiohttp.ClientSession,
    target: WebhookTarget,
    notice: Notice,
    clock: Clock,
) -> str:
    """Make one attempt; return the status, or one word for the failure."""
    try:
        url = read_check_url(target.url, target.resolver.policy)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await target.resolver.aim(url, NO_GROUP)
            if target.proxy_url is not None:
                await target.resolver.resolve(url.host, url.port)
            body, headers = _signed(target.secret, notice, clock)
            async with session.post(
                target.url,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=target.proxy_url,
            ) as response:
                return str(response.status)
    except (CheckUrlForbidden, Blocked):
        return "blocked"
    except TimeoutError:
        return "timeout"
    except (aiohttp.ClientError, OSError):
        return "unreachable"


def _verify_secret(secret: str) -> None:
    """Raise ValueError for a secret that the specification does not allow."""
    key = b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    if not secret.startswith(SECRET_PREFIX) or not 24 <= len(key) <= 64:
        raise ValueError


def _signed(secret: str, notice: Notice, clock: Clock) -> tuple[bytes, dict[str, str]]:
    now = clock.now()
    document = {"type": notice.kind, "timestamp": now.isoformat(), "data": dict(notice.data)}
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "webhook-id": notice.notice_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(notice.notice_id, now, body),
    }
    return body.encode(), headers
