"""Reads the findings of a finished run from the API, page by page."""

from collections.abc import Iterator
from typing import Any

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.service.api_client import ApiClient, path_of

ROOT = "/v1/reconciliations"
PAGE_SIZE = 500

Row = dict[str, Any]


def findings(api: ApiClient, run_id: str, **wanted: str) -> Iterator[Row]:
    """Yield the run's findings; ``kind``, ``class`` and ``status`` filter them."""
    at = f"{path_of(ROOT, run_id)}/discrepancies"
    query: Row = {**wanted, "limit": PAGE_SIZE, "cursor": None}
    while True:
        page = api.get(at, query)
        yield from page["data"]
        if not page["has_more"]:
            return
        query["cursor"] = page["next_cursor"]


def at_most(found: Iterator[Row], most: int, what: str) -> list[Row]:
    """Return the findings. Raises CommandFailed when there are more than ``most``."""
    rows: list[Row] = []
    for each in found:
        rows.append(each)
        if len(rows) > most:
            raise CommandFailed(f"more than {most} {what}", ExitCode.USAGE)
    return rows
