"""The check endpoint as a WSGI application, for Flask, Django and any WSGI server."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from outbox_client.checks.endpoint import CheckEndpoint
from outbox_client.checks.verdicts import BODY_MAX_BYTES, Reply, refusal

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def check_app(endpoint: CheckEndpoint) -> "WSGIApplication":
    """Return a WSGI application that answers check-backs at its mount point."""

    def answer_check(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        reply = _answer(endpoint, environ)
        status = f"{reply.status} {HTTPStatus(reply.status).phrase}"
        length = ("content-length", str(len(reply.body)))
        start_response(status, [("content-type", reply.content_type), length])
        return [reply.body]

    return answer_check


def _answer(endpoint: CheckEndpoint, environ: "WSGIEnvironment") -> Reply:
    if environ["REQUEST_METHOD"] != "POST":
        return refusal(405, "only POST")
    length = environ.get("CONTENT_LENGTH") or ""
    if not length.isdigit():
        return refusal(411, "Content-Length is required")
    if int(length) > BODY_MAX_BYTES:
        return refusal(413, "the check is too long")
    body = environ["wsgi.input"].read(int(length))
    return endpoint.handle(_headers(environ), body)


def _headers(environ: "WSGIEnvironment") -> dict[str, str]:
    prefix = "HTTP_"
    return {
        name[len(prefix) :].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith(prefix)
    }
