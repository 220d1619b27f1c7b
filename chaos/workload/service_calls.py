"""The calls of a client, recorded in the history: sent, answered, or unknown."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chaos.history import HistoryWriter
from chaos.workload.api_connection import ApiConnection, OutcomeUnknown
from chaos.workload.plan import Planned

PATH: Final = "/v1/half-messages"
Ids = dict[str, str]
"""Message ids by transaction."""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """A decision to send."""

    message_id: str
    decision: str


class ServiceCalls:
    """Sends prepares and ends to the APIs in turn."""

    def __init__(self, connections: Sequence[ApiConnection], history: HistoryWriter) -> None:
        self._connections = list(connections)
        self._history = history

    async def prepare(self, group: str, items: Sequence[Planned], *, batch: bool) -> Ids | None:
        """Prepare; return the stored message ids, or None if the outcome is unknown."""
        facts = [_facts(item) for item in items]
        number = self._history.write("prepare", "invoke", group=group, items=facts)
        bodies = [_body(group, item) for item in items]
        answers = await self._answers("prepare", number, bodies, batch=batch)
        if answers is None:
            return None
        return {
            item.tx: answer["id"]
            for item, answer in zip(items, answers, strict=True)
            if "id" in answer
        }

    async def end(self, ends: Sequence[EndRequest], *, batch: bool) -> bool:
        """Send decisions; return whether an answer came."""
        facts = [{"id": end.message_id, "d": end.decision} for end in ends]
        number = self._history.write("end", "invoke", items=facts)
        bodies = [{"message_id": end.message_id, "decision": end.decision} for end in ends]
        return await self._answers("end", number, bodies, batch=batch) is not None

    async def _answers(
        self, f: str, number: int, bodies: list[dict[str, Any]], *, batch: bool
    ) -> list[dict[str, Any]] | None:
        self._connections.append(self._connections.pop(0))
        connection = self._connections[0]
        try:
            if batch:
                found = await _batch(connection, f, bodies)
            else:
                found = [await _single(connection, f, bodies[0])]
        except OutcomeUnknown as error:
            self._history.write(f, "info", number, error=str(error))
            return None
        except CallRejected as refused:
            self._history.write(f, "fail", number, status=refused.status, slug=refused.slug)
            return []
        self._history.write(f, "ok", number, items=found)
        return found


class CallRejected(Exception):
    """A whole call was answered with a 4xx."""

    def __init__(self, status: int, slug: str) -> None:
        super().__init__(status, slug)
        self.status, self.slug = status, slug


async def _batch(
    connection: ApiConnection, f: str, bodies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    path = f"{PATH}/batch" if f == "prepare" else f"{PATH}/end-batch"
    status, _, answer = await connection.post(path, {"items": bodies})
    if status != 207:
        raise CallRejected(status, _slug(answer))
    return [
        _outcome(f, item["status"], item.get("result") or item.get("problem"), replayed=None)
        for item in answer["items"]
    ]


async def _single(connection: ApiConnection, f: str, body: dict[str, Any]) -> dict[str, Any]:
    if f == "prepare":
        status, headers, answer = await connection.post(PATH, body)
        return _outcome(f, status, answer, replayed="idempotency-replayed" in headers)
    path = f"{PATH}/{body['message_id']}/end"
    status, _, answer = await connection.post(path, {"decision": body["decision"]})
    return _outcome(f, status, answer, replayed=None)


def _outcome(f: str, status: int, answer: Any, *, replayed: bool | None) -> dict[str, Any]:
    """Return one item as the history records it."""
    if f == "prepare" and status == 201:
        ids = answer.get("message_ids") or [answer["message_id"]]
        return {"id": answer["message_id"], "ids": ids, "replayed": replayed}
    if status == 200:
        return {"status": 200, "already": answer["already_ended"], "state": answer["state"]}
    problem = {"status": status, "slug": _slug(answer)}
    winner = (answer or {}).get("winning_decision")
    if winner is None:
        return problem
    return {**problem, "decision": winner, "ended": answer["message_id"]}


def _slug(problem: Any) -> str:
    return str((problem or {}).get("type", "")).rsplit("/", 1)[-1]


def _facts(item: Planned) -> dict[str, Any]:
    key = None if item.key is None else base64.b64encode(item.key.encode()).decode()
    headers = json.dumps(item.headers, separators=(",", ":"))
    return {
        "tx": item.tx,
        "topic": item.topic,
        "key": key,
        "sha": item.sha,
        "size": len(item.value.encode()),
        "headers": hashlib.sha256(headers.encode()).hexdigest(),
        "followers": [_facts(each) for each in item.followers],
    }


def _body(group: str, item: Planned) -> dict[str, Any]:
    content = _content(item)
    if item.followers:
        content = {"messages": [content, *map(_content, item.followers)]}
    return {"producer_group": group, "transaction_id": item.tx, **content}


def _content(item: Planned) -> dict[str, Any]:
    body: dict[str, Any] = {"topic": item.topic, "value": item.value}
    if item.key is not None:
        body["key"] = item.key
    if item.headers:
        body["headers"] = dict(item.headers)
    return body
