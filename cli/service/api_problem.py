"""An unsuccessful answer of the API and its exit code."""

import json
from typing import Any

from cli.invocation.exit_codes import ExitCode

BY_STATUS = {
    401: ExitCode.REFUSED,
    403: ExitCode.REFUSED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    412: ExitCode.CONFLICT,
    428: ExitCode.CONFLICT,
    429: ExitCode.UNREACHABLE,
    503: ExitCode.UNREACHABLE,
    504: ExitCode.UNREACHABLE,
}
USAGE = range(400, 500)


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

    def as_text(self) -> str:
        """Return title, detail and the invalid fields as text."""
        title, detail = self.problem.get("title", "refused"), self.problem.get("detail")
        lines = [f"{title} ({self.problem.get('code', self.status)})"]
        lines += [f"  {detail}"] if detail and detail != title else []
        lines += [
            f"  {each.get('pointer', '')}: {each.get('message', '')}"
            for each in self.problem.get("errors", ())
        ]
        return "\n".join(lines)
