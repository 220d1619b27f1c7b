"""`outbox dev --demo`: the six cases of a half message, over the REST API, with a check endpoint.

Runs in its own process beside `outbox dev`; each step prints what it did and what it saw.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from threading import Event, Thread
from time import monotonic
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from cli.dev.topic_reader import read_topic
from cli.invocation.dev_state import DevState, running_state
from cli.service.api_client import ApiClient
from cli.service.api_problem import ApiProblem
from cli.service.limited_http import limited_client
from outbox_client import Check, CheckEndpoint, LocalTransactionState
from outbox_client.wsgi import check_app

TOPIC = "demo.orders"
HALF_MESSAGES = "/v1/half-messages"
PATIENCE_SECONDS = 30.0
CALL_SECONDS = 40.0
POLL_SECONDS = 0.1
PUBLISHED, ROLLED_BACK = "PUBLISHED", "ROLLED_BACK"


def main() -> None:
    """Run the demo against the `outbox dev` of the data directory in the first argument."""
    state = running_state(Path(sys.argv[1]))
    if state is None:
        sys.exit("no `outbox dev` runs in this folder")
    try:
        ok = run_demo(state)
    except ApiProblem as problem:
        sys.exit(f"the API refused: {problem.as_text()}")
    sys.exit(0 if ok else 1)


def run_demo(state: DevState) -> bool:
    """Run every step; return whether all of them passed."""
    outcomes: dict[str, LocalTransactionState] = {}
    group = f"demo-{token_hex(4)}"
    headers = {"authorization": f"Bearer {state.api_key}"} if state.api_key else {}
    with limited_client(state.api_url, headers) as http:
        api = ApiClient(http, CALL_SECONDS)
        with check_endpoint(api, group, outcomes):
            demo = Demo(api=api, group=group, outcomes=outcomes)
            for step in (
                demo.commit,
                demo.rollback,
                demo.lost_end_of_a_commit,
                demo.lost_end_of_a_rollback,
                demo.opposite_end,
                demo.repeated_prepare,
            ):
                step()
            demo.read_back(state.kafka_bootstrap_servers)
    return demo.failed == 0


@dataclass(slots=True, kw_only=True)
class Demo:
    """The steps, and the messages that must be in the topic after them."""

    api: ApiClient
    group: str
    outcomes: dict[str, LocalTransactionState]
    published: list[str] = field(default_factory=list)
    first: dict[str, Any] = field(default_factory=dict)
    failed: int = 0

    def commit(self) -> None:
        """Prepare, end with COMMIT, wait for Kafka."""
        self.first = self._prepare("order-1")
        ended = self._end(self.first["message_id"], "COMMIT", {"prefer": "wait=15"})
        self.published.append(self.first["message_id"])
        place = ended["publication"] or {}
        seen = f"{ended['state']} at offset {place.get('offset')} of {place.get('topic')}"
        self._report("commit", ended["state"] == PUBLISHED, seen)

    def rollback(self) -> None:
        """Prepare, end with ROLLBACK: nothing reaches Kafka."""
        prepared = self._prepare("order-2")
        ended = self._end(prepared["message_id"], "ROLLBACK")
        self._report("rollback", ended["state"] == ROLLED_BACK, ended["state"])

    def lost_end_of_a_commit(self) -> None:
        """The local transaction committed, but the end never came: the checker asks."""
        state = self._lose_the_end("order-3", LocalTransactionState.COMMIT, PUBLISHED)
        self._report("lost end, checked: COMMIT", state == PUBLISHED, state)

    def lost_end_of_a_rollback(self) -> None:
        """The local transaction rolled back, and the end never came either."""
        state = self._lose_the_end("order-4", LocalTransactionState.ROLLBACK, ROLLED_BACK)
        self._report("lost end, checked: ROLLBACK", state == ROLLED_BACK, state)

    def opposite_end(self) -> None:
        """A second, opposite end is refused: the first decision is final."""
        try:
            self._end(self.first["message_id"], "ROLLBACK")
        except ApiProblem as problem:
            seen = f"{problem.status} {problem.problem.get('code')}"
            self._report("opposite end", problem.status == 409, seen)
        else:
            self._report("opposite end", False, "accepted")

    def repeated_prepare(self) -> None:
        """A repeated prepare returns the same undecided message, or the decision."""
        first, again = self._prepare("order-5"), self._prepare("order-5")
        self._end(first["message_id"], "ROLLBACK")
        same = again["message_id"] == first["message_id"]
        self._report("repeated prepare", same, "the same message" if same else "another message")
        try:
            self._prepare("order-1")
        except ApiProblem as problem:
            seen = f"{problem.status} {problem.problem.get('code')}"
            self._report("prepare after the end", problem.status == 409, seen)
        else:
            self._report("prepare after the end", False, "accepted")

    def read_back(self, bootstrap_servers: str) -> None:
        """A read_committed consumer reads exactly the committed messages, each once."""
        records = read_topic(bootstrap_servers, TOPIC)
        ours = [
            str(each.header("outbox_message_id"))
            for each in records
            if each.header("outbox_producer_group") == self.group
        ]
        good = sorted(ours) == sorted(self.published)
        self._report("topic read back", good, f"{len(ours)} of {len(self.published)} records")

    def _lose_the_end(self, name: str, outcome: LocalTransactionState, wanted: str) -> str:
        self.outcomes[f"{self.group}-{name}"] = outcome
        message_id = self._prepare(name)["message_id"]
        if outcome is LocalTransactionState.COMMIT:
            self.published.append(message_id)
        path = f"{HALF_MESSAGES}/{message_id}"
        return _wait_for(lambda: str(self.api.get(path)["state"]), wanted)

    def _prepare(self, name: str) -> dict[str, Any]:
        body = {
            "producer_group": self.group,
            "topic": TOPIC,
            "key": name,
            "value": f'{{"order": "{name}"}}',
            "transaction_id": f"{self.group}-{name}",
        }
        answer: dict[str, Any] = self.api.post(HALF_MESSAGES, body)
        return answer

    def _end(
        self, message_id: str, decision: str, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        path = f"{HALF_MESSAGES}/{message_id}/end"
        answer: dict[str, Any] = self.api.post(path, {"decision": decision}, headers=headers)
        return answer

    def _report(self, step: str, good: bool, seen: str) -> None:
        self.failed += not good
        print(f"  {'ok    ' if good else 'FAILED'}  {step:<28}{seen}", flush=True)


@contextmanager
def check_endpoint(
    api: ApiClient, group: str, outcomes: Mapping[str, LocalTransactionState]
) -> Iterator[None]:
    """Serve the group's check endpoint on loopback and register the group with it."""

    class Listener:
        """Looks up the local transaction, as a service does in its own database."""

        def check_local_transaction(self, check: Check) -> LocalTransactionState:
            """Return the outcome of the transaction; UNKNOWN if there is none."""
            return outcomes.get(check.transaction_id or "", LocalTransactionState.UNKNOWN)

    with make_server("127.0.0.1", 0, _not_ready, handler_class=_Quiet) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            secret = _register(api, group, f"http://127.0.0.1:{server.server_port}/outbox/check")
            with CheckEndpoint(group, secret, Listener()) as endpoint:
                server.set_app(check_app(endpoint))
                yield
        finally:
            server.shutdown()
            thread.join()


def _register(api: ApiClient, group: str, check_url: str) -> str:
    """Register the group with a short schedule; return its secret, which is shown once."""
    body = {
        "check_url": check_url,
        "transaction_timeout_seconds": 1,
        "check_interval_seconds": 1,
    }
    return str(api.call("PUT", f"/v1/producer-groups/{group}", body=body).body["check_secret"])


def _wait_for(ask: Callable[[], str], wanted: str) -> str:
    """Ask until the answer is `wanted` or the time is over; return the last answer."""
    deadline, never = monotonic() + PATIENCE_SECONDS, Event()
    while (seen := ask()) != wanted and monotonic() < deadline:
        never.wait(POLL_SECONDS)
    return seen


def _not_ready(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("503 Service Unavailable", [("content-length", "0")])
    return []


class _Quiet(WSGIRequestHandler):
    """No access log between the steps."""

    def log_message(self, format: str, *_: Any) -> None:
        """Write no log line."""


if __name__ == "__main__":
    main()
