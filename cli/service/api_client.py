"""Client of the API: one request, then its JSON body or an exception."""

import json
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
from cli.invocation.output import printable
from cli.service.api_problem import ApiProblem
from outbox.settings.environment import load_settings

Query = Mapping[str, Any]

PAGE_ROWS: Final = 500
"""Rows of a page, where a command shows all of them."""
REASON: Final = 200
"""Characters of the reason of a failure."""
NO_OUTBOX: Final = "is not the API of an outbox: give another --url"
NOT_USED: Final = "OUTBOX_API_KEY is not used for `outbox dev`: set OUTBOX_API_URL too"
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

    def rows(self, path: str, query: Query | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page by page."""
        asked: dict[str, Any] = {**(query or {}), "limit": PAGE_ROWS, "cursor": None}
        while True:
            page = self.get(path, asked)
            yield from page["data"]
            if not page["has_more"]:
                return
            asked["cursor"] = page["next_cursor"]

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
        with self._named_failures():
            response = self._http.request(method, path, params=given, json=body, headers=headers)
        answer = _members(response.content)
        if not response.is_success:
            raise self._refusal(response.status_code, answer)
        if response.content and answer is None:
            raise CommandFailed(f"{self._base} {NO_OUTBOX}", ExitCode.USAGE)
        return Answer(body=answer, etag=response.headers.get("etag"))

    def _refusal(self, status: int, problem: Any) -> Exception:
        """Return the problem; a proxy or another server answers without one."""
        if isinstance(problem, dict) and "code" in problem:
            return ApiProblem(status, problem)
        code = ApiProblem(status, {}).exit_code
        if code in (ExitCode.UNREACHABLE, ExitCode.REFUSED):
            line = f"{self._base} answers {status}, but not as the API of an outbox"
            return CommandFailed(line, code)
        return CommandFailed(f"{self._base} answers {status} and {NO_OUTBOX}", ExitCode.USAGE)

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        """Raise CommandFailed for an exchange without an answer."""
        try:
            yield
        except httpx2.TimeoutException:
            raise CommandFailed(f"no answer from {self._base} in time", _SILENT) from None
        except httpx2.UnsupportedProtocol:
            line = f"{self._base} is no address of an API: it begins with http:// or https://"
            raise CommandFailed(line, ExitCode.USAGE) from None
        except httpx2.TransportError as error:
            why = printable(" ".join(str(error).split()))[:REASON] or type(error).__name__
            why = re.sub(r"^\[Errno \d+\] ", "", why)
            line = f"cannot reach {self._base}: {why}; start the API, or name it with --url"
            raise CommandFailed(line, _SILENT) from None
        except UnicodeEncodeError:
            raise CommandFailed("a value is no UTF-8 text", ExitCode.USAGE) from None

    @property
    def _base(self) -> str:
        return str(self._http.base_url).rstrip("/")


_SILENT = ExitCode.UNREACHABLE


def path_of(root: str, name: str) -> str:
    """Return the path of one object below a list. Raises CommandFailed for what is no name."""
    if not name:
        raise CommandFailed("the id or name is empty", ExitCode.USAGE)
    if "/" in name or name in (".", ".."):
        raise CommandFailed(f"{printable(name)!r} is no id and no name", ExitCode.USAGE)
    try:
        return f"{root}/{quote(name, safe='')}"
    except UnicodeEncodeError:
        raise CommandFailed("the id or name is no UTF-8 text", ExitCode.USAGE) from None


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
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise CommandFailed(printable(f"{url}: {error}"), ExitCode.USAGE) from None
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
    if key:  # it is for the service that the settings mean, never for an address from a file
        invocation.say(NOT_USED)
    return state.api_url, state.api_key


class _Members(dict[str, Any]):
    """The members of an answer."""

    def __missing__(self, name: str) -> Any:
        line = f"the answer has no {name!r}: is --url the API of an outbox of this version?"
        raise CommandFailed(line, ExitCode.USAGE)


def _members(content: bytes) -> Any:
    """Return an answer of JSON, else None."""
    try:
        found = json.loads(content, object_hook=_Members)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
