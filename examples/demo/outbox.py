"""A REST client for the demo: groups, messages by state, and single messages."""

from dataclasses import dataclass
from typing import Any, Self

import httpx2

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The check settings of a group; the times are short for a short demo."""

    check_url: str
    transaction_timeout_seconds: int
    check_interval_seconds: int
    check_max: int
    check_timeout_seconds: int = 3


class Outbox:
    """A small client of the REST API, for calls that producers do not need."""

    def __init__(self, url: str, api_key: str | None) -> None:
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx2.Client(base_url=url, headers=headers, trust_env=False, timeout=10.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def register_group(self, name: str, settings: GroupSettings) -> str:
        """Register a producer group; return its check secret, a new one if it was registered."""
        body = {field: getattr(settings, field) for field in settings.__slots__}
        path = f"/v1/producer-groups/{name}"
        answer = _members(self._http.put(path, json=body, headers={"if-match": "*"}))
        if "check_secret" not in answer:
            answer = _members(self._http.post(f"{path}/rotate-secret", json={"overlap_seconds": 0}))
        return str(answer["check_secret"])

    def messages(self, **filters: str) -> list[dict[str, Any]]:
        """Return every message that matches, newest first."""
        query: dict[str, str | int] = {**filters, "limit": PAGE}
        found: list[dict[str, Any]] = []
        while True:
            page = _members(self._http.get("/v1/half-messages", params=query))
            found += page["data"]
            if not page["has_more"]:
                return found
            query["cursor"] = page["next_cursor"]


def _members(answer: httpx2.Response) -> dict[str, Any]:
    answer.raise_for_status()
    members: dict[str, Any] = answer.json()
    return members
