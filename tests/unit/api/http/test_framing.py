"""A head that is refused for its form says what to send instead."""

from __future__ import annotations

import pytest

from api.http.framing import validate_framing
from api.http.problems import Problem

BY_JAVA = {
    b"host": b"localhost",
    b"connection": b"Upgrade, HTTP2-Settings",
    b"content-length": b"2",
    b"upgrade": b"h2c",
    b"http2-settings": b"AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA",
    b"content-type": b"application/json",
}
"""What `java.net.http.HttpClient` sends by default."""


def test_the_refusal_of_javas_client_names_the_way_to_build_it() -> None:
    with pytest.raises(Problem) as refused:
        validate_framing("POST", "1.1", list(BY_JAVA.items()), BY_JAVA)
    assert "HttpClient.Version.HTTP_1_1" in str(refused.value.detail)
