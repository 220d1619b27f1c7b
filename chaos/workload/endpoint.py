"""The check endpoint of a run: answers from the clients' SQLite files.

A transaction without a truth is UNKNOWN while its client may still work on it. After that its truth
becomes ROLLBACK, which is written before the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from chaos.history import HistoryWriter
from chaos.workload.truth import Truth
from devservers.child import CLEAN_ENVIRONMENT
from outbox.clock import SystemClock
from outbox.settings.environment import process_environment

VARIABLE: Final = "CHAOS_ENDPOINT"
LATE_SECONDS: Final = 4.0
"""A client without a decision so long after its prepare is taken for dead."""
LARGEST_BODY: Final = 1 << 20


def main() -> None:
    """Answer until killed or asked to stop."""
    given = json.loads(process_environment()[VARIABLE])
    asyncio.run(serve(Path(given["run"]), given["port"], given["life"]))


def environment_of(run: Path, port: int, life: int) -> dict[str, str]:
    """Return the environment of the endpoint's process."""
    return {
        **CLEAN_ENVIRONMENT,
        VARIABLE: json.dumps({"run": str(run), "port": port, "life": life}),
    }


async def serve(run: Path, port: int, life: int) -> None:
    """Listen on the port until the process ends."""
    endpoint = Endpoint(run, HistoryWriter(run, "endpoint-0", life))
    server = await asyncio.start_server(endpoint.connected, "127.0.0.1", port, limit=LARGEST_BODY)
    await server.serve_forever()


class Endpoint:
    """Answers the checks of all clients in one process."""

    def __init__(self, run: Path, history: HistoryWriter) -> None:
        self._run, self._history = run, history
        self._truths: dict[str, Truth] = {}
        self._clock = SystemClock()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                headers = dict(
                    line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line
                )
                body = await reader.readexactly(int(headers["content-length"]))
                answer = json.dumps(self.answer(json.loads(body), headers["webhook-id"])).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                    + f"{len(answer)}\r\n\r\n".encode()
                    + answer
                )
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    def answer(self, request: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """Return the answer to a check, single or batch, and record it."""
        data = request["data"]
        batch = request["type"] == "transaction.check.batch"
        checks = data["checks"] if batch else [data]
        verdicts = self._verdicts(checks)
        items = [{"id": each["message_id"], "answered": each["decision"]} for each in verdicts]
        self._history.write("check", "ok", request=request_id, items=items)
        return {"verdicts": verdicts} if batch else verdicts[0]

    def _verdicts(self, checks: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        of_client = defaultdict[str, list[Mapping[str, Any]]](list)
        for check in checks:
            of_client["-".join(check["transaction_id"].split("-", 2)[:2])].append(check)
        return [
            {"message_id": check["message_id"], "decision": decision}
            for client, some in of_client.items()
            for check, decision in self._decisions(self._truth_of(client), some)
        ]

    def _decisions(
        self, truth: Truth, checks: list[Mapping[str, Any]]
    ) -> Iterable[tuple[Mapping[str, Any], str]]:
        known = truth.known([check["transaction_id"] for check in checks])
        late = [check["transaction_id"] for check in checks if self._is_late(check)]
        missing = {tx: "ROLLBACK" for tx in late if tx not in known}
        if missing:
            known.update(truth.decide(missing))
        return [(check, known.get(check["transaction_id"], "UNKNOWN")) for check in checks]

    def _is_late(self, check: Mapping[str, Any]) -> bool:
        age = self._clock.now() - datetime.fromisoformat(check["prepared_at"])
        return age.total_seconds() > LATE_SECONDS

    def _truth_of(self, client: str) -> Truth:
        if client not in self._truths:
            self._truths[client] = Truth(self._run / "truth" / f"{client}.sqlite")
        return self._truths[client]


if __name__ == "__main__":
    main()
