"""Client of the API: one request, then its JSON body or an exception."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx2
import typer

from cli.invocation.context import Context, context_of
from cli.invocation.dev_state import running_state
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.service.api_problem import ApiProblem
from outbox.settings.environment import load_settings

Query = Mapping[str, Any]

PAGE_ROWS: Final = 500
"""Rows of a page, where a command shows all of them."""
_KEY: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer: its body and its entity tag."""

    body: Any
    etag: str | None


class ApiClient:
    """Calls one API; created by `api_client`."""

    def __init__(self, http: httpx2.Client) -> None:
        """Use `api_client`."""
        self._http = http

    def get(self, path: str, query: Query | None = None) -> Any:
        """GET `path`; return the body."""
        return self.call("GET", path, query=query).body

    def whole_list(self, path: str) -> Any:
        """GET every page of a list; return one body with all rows."""
        rows: list[Any] = []
        query: dict[str, Any] = {"limit": PAGE_ROWS, "cursor": None}
        while True:
            page = self.get(path, query)
            rows.extend(page["data"])
            if not page["has_more"]:
                return {**page, "data": rows}
            query["cursor"] = page["next_cursor"]

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """POST `body` to `path`; return the body of the answer."""
        return self.call("POST", path, body=body, **options).body

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request.

        Raises ApiProblem for any status but success, CommandFailed without an answer.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            response = self._http.request(method, path, params=given, json=body, headers=headers)
        except httpx2.TimeoutException:
            raise CommandFailed(f"no answer from {self._base} in time", _SILENT) from None
        except httpx2.UnsupportedProtocol:
            line = f"{self._base} is no address of an API: it begins with http:// or https://"
            raise CommandFailed(line, ExitCode.USAGE) from None
        except httpx2.TransportError as error:
            raise CommandFailed(f"cannot reach {self._base}: {error}", _SILENT) from None
        if not response.is_success:
            raise ApiProblem(response.status_code, _problem(response))
        return Answer(body=self._body_of(response), etag=response.headers.get("etag"))

    def _body_of(self, response: httpx2.Response) -> Any:
        """Return the body. Raises CommandFailed if it is no JSON: another server has answered."""
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            line = f"{self._base} is not the API of an outbox: give another --url"
            raise CommandFailed(line, ExitCode.USAGE) from None

    @property
    def _base(self) -> str:
        return str(self._http.base_url).rstrip("/")


_SILENT = ExitCode.UNREACHABLE


def path_of(root: str, name: str) -> str:
    """Return the path of one object below a list. Raises CommandFailed for an empty name."""
    if not name:
        raise CommandFailed("the id or name is empty", ExitCode.USAGE)
    return f"{root}/{quote(name, safe='')}"


@contextmanager
def api_client(context: typer.Context, *, extra_seconds: float = 0.0) -> Iterator[ApiClient]:
    """Open a client of the API that the flags, the settings or a running `outbox dev` name.

    `extra_seconds` is added to the time-out, for a call that waits on purpose. Raises CommandFailed
    if none of them names an API.
    """
    invocation = context_of(context)
    url, key = _address(invocation)
    headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    timeout = invocation.timeout_seconds + extra_seconds
    try:
        http = httpx2.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)
    except httpx2.InvalidURL as error:
        raise CommandFailed(f"{url}: {error}", ExitCode.USAGE) from None
    with http:
        yield ApiClient(http)


def _address(invocation: Context) -> tuple[str, str | None]:
    settings = load_settings()
    key = settings.api_key.get_secret_value() if settings.api_key else None
    if key and not _KEY.fullmatch(key):
        line = "OUTBOX_API_KEY has a space, a line end or a letter that no key has"
        raise CommandFailed(line, ExitCode.USAGE)
    url = invocation.url or settings.api_url
    if url is not None:
        return url, key
    state = running_state()
    if state is None:
        line = (
            "no API configured: use --url or OUTBOX_API_URL, or start `outbox dev` in this folder"
        )
        raise CommandFailed(line, ExitCode.USAGE)
    # A key of the settings is for the service that they mean, never for an address from a file.
    return state.api_url, state.api_key


def _problem(response: httpx2.Response) -> dict[str, Any]:
    """Return the problem document; a proxy may answer without one."""
    try:
        body = response.json()
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"title": f"answer {response.status_code}"}
