"""Reads only checks that are signed with the group's secret and belong to the group."""

import json
from collections.abc import Mapping, Sequence

from standardwebhooks import Webhook

from outbox_client.checks.request import CheckRequest, Refused, read_check_request


class SignedRequests:
    """Verifies and reads the calls for one producer group."""

    def __init__(self, producer_group: str, secrets: str | Sequence[str]) -> None:
        given = [secrets] if isinstance(secrets, str) else list(secrets)
        if not given:
            raise ValueError("a check endpoint needs the check secret of its group")
        self._producer_group = producer_group
        self._verifiers = [_verifier(secret) for secret in given]

    def read(self, headers: Mapping[str, str], body: bytes) -> CheckRequest:
        """Return the checks; raises ``Refused``: 401 unsigned, 400 unreadable, 403 foreign."""
        lower_case = {name.lower(): value for name, value in headers.items()}
        if not any(_verifies(verifier, lower_case, body) for verifier in self._verifiers):
            raise Refused(401, "the signature is not valid")
        request = read_check_request(body)
        if any(check.producer_group != self._producer_group for check in request.checks):
            raise Refused(403, "a check of another producer group")
        return request


def _verifier(secret: str) -> Webhook:
    try:
        return Webhook(secret)
    except Exception as error:  # the library's class or base64's; its text never has the secret
        raise ValueError("a check secret is whsec_ and base64, and not empty") from error


def _verifies(verifier: Webhook, headers: dict[str, str], body: bytes) -> bool:
    try:
        verifier.verify(body, headers)
    except json.JSONDecodeError:  # raised after the signature check: signed, but not JSON
        return True
    except Exception:  # the verifier lets base64, split and decode errors through
        return False
    return True
