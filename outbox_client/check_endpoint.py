"""CheckEndpoint: answers a signed check with a verdict; a doubtful case is UNKNOWN.

It depends on no web framework: the adapters pass it the headers and the raw body. A repeated
``webhook-id`` is answered again, not refused: after a crash the service may repeat a check with
the same number, and an answer always reflects the current state of the local database.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Self

from standardwebhooks import Webhook

from outbox_client.check_request import CheckRequest, Refused, read_check_request
from outbox_client.listener import Check, CheckListener, Unknown
from outbox_client.message import LocalTransactionState

log = logging.getLogger("outbox_client")

BODY_MAX_BYTES = 16 * 1024 * 1024
CONCURRENCY = 16
REPLY_MARGIN_SHARE = 0.1

UNKNOWN = LocalTransactionState.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response that the adapter sends."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision; UNKNOWN also has a reason and a delay until the next check."""

    decision: LocalTransactionState
    reason: str | None = None
    retry_after_seconds: int | None = None


class CheckEndpoint:
    """Answers the check-backs of one producer group, in any web framework and any thread.

    ``secrets`` is the group's ``check_secret``, or several during a rotation. The listener runs in
    at most ``concurrency`` threads of the endpoint. After nine tenths of the time until
    ``reply_by`` the endpoint stops waiting and answers UNKNOWN.
    """

    def __init__(
        self,
        producer_group: str,
        secrets: str | Sequence[str],
        listener: CheckListener,
        concurrency: int = CONCURRENCY,
    ) -> None:
        given = [secrets] if isinstance(secrets, str) else list(secrets)
        if not given:
            raise ValueError("a check endpoint needs the check secret of its group")
        self._producer_group = producer_group
        self._verifiers = [_verifier(secret) for secret in given]
        self._listener = listener
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="outbox-check")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the listener's running answers and accept no more checks."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one call: 401 unsigned, 400 unreadable, 403 for another group, else 200.

        503 while closing: unlike an UNKNOWN, that does not count as a check.
        """
        received = monotonic()
        if not self._is_signed(headers, body):
            return refusal(401, "the signature is not valid")
        try:
            request = read_check_request(body)
        except Refused as refused:
            return refusal(refused.status, refused.title)
        if any(check.producer_group != self._producer_group for check in request.checks):
            return refusal(403, "a check of another producer group")
        try:
            return _reply(request, self._verdicts(request, received))
        except RuntimeError:  # the pool starts no more threads
            return refusal(503, "the endpoint is closing")

    def _is_signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        lower_case = {name.lower(): value for name, value in headers.items()}
        return any(_verifies(verifier, lower_case, body) for verifier in self._verifiers)

    def _verdicts(self, request: CheckRequest, received: float) -> list[Verdict]:
        allowed = request.budget.total_seconds() * (1 - REPLY_MARGIN_SHARE)
        answers = [self._threads.submit(self._ask, check) for check in request.checks]
        wait(answers, timeout=max(0.0, received + allowed - monotonic()))
        return [
            _verdict_in_time(check, answer)
            for check, answer in zip(request.checks, answers, strict=True)
        ]

    def _ask(self, check: Check) -> Verdict:
        try:
            returned = self._listener.check_local_transaction(check)
        except Exception as error:
            facts = {"message_id": check.message_id}
            log.exception("check_listener_failed", extra=facts)
            return Verdict(UNKNOWN, f"the listener raised {type(error).__name__}")
        return _verdict_of(returned)


def refusal(status: int, title: str) -> Reply:
    """Return a problem+json answer that contains nothing of the request."""
    body = json.dumps({"status": status, "title": title}).encode()
    return Reply(status=status, body=body, content_type="application/problem+json")


def _verifier(secret: str) -> Webhook:
    try:
        return Webhook(secret)
    except Exception as error:  # the library's class or base64's; its text never has the secret
        raise ValueError("a check secret is whsec_ and base64, and not empty") from error


def _verifies(verifier: Webhook, headers: dict[str, str], body: bytes) -> bool:
    try:
        verifier.verify(body, headers)
    except json.JSONDecodeError:  # raised after the signature check: signed, but not JSON
        return True
    except Exception:  # the verifier lets base64, split and decode errors through
        return False
    return True


def _verdict_in_time(check: Check, answer: Future[Verdict]) -> Verdict:
    if answer.done() and not answer.cancelled():
        return answer.result()
    answer.cancel()
    log.warning("check_answer_late", extra={"message_id": check.message_id})
    return Verdict(UNKNOWN, "no answer before reply_by")


def _verdict_of(returned: object) -> Verdict:
    if returned is None:
        return Verdict(UNKNOWN)
    if isinstance(returned, Unknown):
        return Verdict(UNKNOWN, returned.reason, int(returned.retry_after_seconds))
    try:
        return Verdict(LocalTransactionState(str(returned)))
    except ValueError:
        return Verdict(UNKNOWN, "the listener returned no local transaction state")


def _reply(request: CheckRequest, verdicts: Sequence[Verdict]) -> Reply:
    items = [_item(*pair) for pair in zip(request.checks, verdicts, strict=True)]
    body = {"verdicts": items} if request.batch else items[0]
    return Reply(status=200, body=json.dumps(body).encode())


def _item(check: Check, verdict: Verdict) -> dict[str, object]:
    item: dict[str, object] = {
        "message_id": check.message_id,
        "decision": verdict.decision.value,
    }
    if verdict.reason:
        item["reason"] = verdict.reason
    if verdict.retry_after_seconds is not None:
        item["retry_after_seconds"] = verdict.retry_after_seconds
    return item
