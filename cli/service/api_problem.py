"""An unsuccessful answer of the API and its exit code."""

import json
from typing import Any

from cli.invocation.exit_codes import ExitCode
from cli.service.check_url_rules import MEANING

BY_STATUS = {
    401: ExitCode.REFUSED,
    403: ExitCode.REFUSED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    412: ExitCode.CONFLICT,
    428: ExitCode.CONFLICT,
    429: ExitCode.UNREACHABLE,
    502: ExitCode.UNREACHABLE,
    503: ExitCode.UNREACHABLE,
    504: ExitCode.UNREACHABLE,
}
USAGE = range(400, 500)
STANDARD = ("type", "title", "status", "detail", "instance", "code", "retryable", "errors")
"""Members that are in every problem; the others are facts of this one."""

IN_COMMANDS = {
    "unauthenticated": (
        "Set OUTBOX_API_KEY, or OUTBOX_API_KEY_FILE, to a key that has not expired and was not"
        " revoked; `outbox key create` makes one."
    ),
    "unknown-group": (
        "Not registered, or of another group than the key's: see `outbox group list`."
        " To register it: outbox group set NAME --check-url URL"
    ),
    "message-not-found": "Never prepared, retired, or of another group: see `outbox message list`.",
    "run-not-found": "See `outbox reconcile list`.",
    "precondition-failed": "Somebody has changed it meanwhile: run the command again.",
    "precondition-required": "Somebody has created it meanwhile: run the command again.",
    "not-found": "The service has another version than this command: see `outbox --version`.",
    "method-not-allowed": "The service has another version than this command.",
}
"""What to do next where the API's own detail speaks of requests."""


class ApiProblem(Exception):
    """The API refused a request: its `application/problem+json` document (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("title", status)))
        self.status = status
        self.problem = problem

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for this status."""
        fallback = ExitCode.USAGE if self.status in USAGE else ExitCode.ERROR
        return BY_STATUS.get(self.status, fallback)

    def as_json(self) -> str:
        """Return the document as one line."""
        return json.dumps(self.problem, ensure_ascii=False)

    def in_one_line(self) -> str:
        """Return the title and what to do next."""
        return ": ".join(filter(None, (str(self), self._detail())))

    def as_text(self) -> str:
        """Return title, detail and the facts; the detail names each invalid field."""
        title, detail = self.problem.get("title", "refused"), self._detail()
        lines = [f"{title} ({self._code})"]
        lines += [f"  {detail}"] if detail and detail != title else []
        facts = {name: value for name, value in self.problem.items() if name not in STANDARD}
        lines += [f"  {name}: {value}" for name, value in facts.items() if value is not None]
        meaning = MEANING.get(str(facts.get("rule")))
        lines += [f"  {meaning}"] if meaning else []
        return "\n".join(lines)

    @property
    def _code(self) -> str:
        return str(self.problem.get("code", self.status))

    def _detail(self) -> str | None:
        return IN_COMMANDS.get(self._code, self.problem.get("detail"))
