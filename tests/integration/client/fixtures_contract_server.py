"""A server of the REST contract, in this process, over real HTTP, for tests of the client.

It keeps half messages in a dictionary; the first decision wins. ``faults`` are applied first, one
per request: an answer to send instead, a connection to cut, or an answer to drop after the work.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import cast
from uuid import uuid4

from tests.fixtures_http_server import QuietHandler, http_server

Members = dict[str, object]
AT = "2026-09-21T14:13:26Z"
CUT = "cut the connection"
LOSE_ANSWER = "do the work, then cut the connection"


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that replaces the normal one."""

    status: int
    members: object
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Half:
    """One half message and its decision."""

    content: Members
    message_id: str = field(default_factory=lambda: str(uuid4()))
    decision: str | None = None
    decided_by: str | None = None
    state: str = "PREPARED"

    @property
    def messages(self) -> list[Members]:
        """The messages under its decision."""
        return cast("list[Members]", self.content.get("messages", [self.content]))

    def decide(self, decision: str, decided_by: str) -> None:
        """Let the first decision win."""
        self.decision, self.decided_by = decision, decided_by
        self.state = "COMMITTED" if decision == "COMMIT" else "ROLLED_BACK"


class ContractService:
    """The rules: idempotent prepare, first decision wins, batches item by item."""

    def __init__(self) -> None:
        self.halves: dict[str, Half] = {}
        self.requests: list[tuple[str, Mapping[str, str], Members]] = []
        self.faults: deque[Fault | str] = deque()
        self.batch_faults: deque[Fault | str] = deque()
        """These are for batches of several items alone, and come first."""
        self.item_faults: deque[Fault | None] = deque()
        self.release = Event()
        self.release.set()
        self.kafka = Event()
        """An end with ``Prefer: wait`` is answered when it is set."""
        self.kafka.set()
        self._lock = Lock()

    def sent(self) -> list[list[Members]]:
        """Return the items of each request; a call that was sent alone is one."""
        bodies = [body for _, _, body in self.requests]
        return [cast("list[Members]", body.get("items", [body])) for body in bodies]

    def half_of(self, transaction_id: str) -> Half | None:
        """Find a half by its transaction id."""
        known = (h for h in self.halves.values() if h.content["transaction_id"] == transaction_id)
        return next(known, None)

    def answer(self, path: str, body: Members) -> tuple[int, Members, dict[str, str]]:
        """Route one POST."""
        with self._lock:
            if path == "/v1/half-messages":
                return self._prepare(body)
            if path in ("/v1/half-messages/batch", "/v1/half-messages/end-batch"):
                return 207, self._batch(path, body), {}
            match = re.fullmatch(r"/v1/half-messages/([^/]+)/end", path)
            return self._end(match[1], body) if match else problem(404, "not-found")

    def _prepare(self, body: Members) -> tuple[int, Members, dict[str, str]]:
        half = self.half_of(str(body["transaction_id"]))
        if half is not None and half.content != body:
            return problem(422, "transaction-id-reused", existing_message_id=half.message_id)
        if half is not None and half.decision is not None:
            return already_ended(half)
        headers = {"Idempotency-Replayed": "true"} if half else {}
        half = half or Half(body)
        self.halves[half.message_id] = half
        kept = ("producer_group", "transaction_id", "topic")
        leader = body | half.messages[0]
        members: Members = {name: leader[name] for name in kept} | {"message_id": half.message_id}
        return 201, members | {"state": half.state, "prepared_at": AT, "next_check_at": AT}, headers

    def _end(self, message_id: str, body: Members) -> tuple[int, Members, dict[str, str]]:
        half = self.halves.get(message_id)
        if half is None:
            return problem(404, "message-not-found")
        decision, already = str(body["decision"]), half.decision is not None
        if already and decision not in (half.decision, "UNKNOWN"):
            return already_ended(half)
        if not already and decision != "UNKNOWN":
            half.decide(decision, "producer")
        return 200, ended(half, already), {}

    def _batch(self, path: str, body: Members) -> Members:
        items = body["items"]
        assert isinstance(items, list)
        return {"items": [self._item(path, index, item) for index, item in enumerate(items)]}

    def _item(self, path: str, index: int, item: Members) -> Members:
        fault = self.item_faults.popleft() if self.item_faults else None
        if fault is not None:
            return {"index": index, "status": fault.status, "problem": fault.members}
        if path.endswith("/end-batch"):
            status, members, _ = self._end(str(item.pop("message_id")), item)
        else:
            status, members, headers = self._prepare(item)
            if headers:
                return {"index": index, "status": status, "result": members, "replayed": True}
        part = "result" if status < 300 else "problem"
        return {"index": index, "status": status, part: members}


def ended(half: Half, already: bool) -> Members:
    """Return the body of a successful end."""
    return {
        "message_id": half.message_id,
        "state": half.state,
        "decision": half.decision,
        "decided_by": half.decided_by,
        "decided_at": AT if half.decision else None,
        "already_ended": already,
        "publication": None,
    }


def already_ended(half: Half) -> tuple[int, Members, dict[str, str]]:
    """Return the refusal that names the standing decision."""
    decision: Members = {"winning_decision": half.decision, "decided_by": half.decided_by}
    return problem(409, "already-ended", message_id=half.message_id, decided_at=AT, **decision)


def problem(status: int, code: str, **members: object) -> tuple[int, Members, dict[str, str]]:
    """Return a problem+json answer."""
    retryable = status in (429, 503)
    return status, {"code": code, "status": status, "retryable": retryable, **members}, {}


def fault(status: int, code: str, **headers: str) -> Fault:
    """Return a problem to be met by the next request."""
    members = problem(status, code)[1]
    return Fault(
        status, members, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def serving(service: ContractService) -> AbstractContextManager[str]:
    """Serve the contract on a free port of the loopback; yield the URL."""
    return http_server(contract_handler(service))


def contract_handler(service: ContractService) -> type[QuietHandler]:
    """Return the handler of the contract's requests."""

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            body = json.loads(self.body())
            is_shared = len(body.get("items", ())) > 1 and service.batch_faults
            faults = service.batch_faults if is_shared else service.faults
            fault = faults.popleft() if faults else None
            service.requests.append((self.path, dict(self.headers.items()), body))
            service.release.wait(30)
            if "prefer" in self.headers:
                service.kafka.wait(30)
            if isinstance(fault, Fault):
                self._send(fault.status, fault.members, dict(fault.headers))
                return
            answer = service.answer(self.path, body) if fault != CUT else None
            if answer is None or fault == LOSE_ANSWER:
                self.close_connection = True
                return
            self._send(*answer)

        def _send(self, status: int, members: object, headers: dict[str, str]) -> None:
            body = members if isinstance(members, bytes) else json.dumps(members).encode()
            self.answer(body, status, **headers)

    return Handler
