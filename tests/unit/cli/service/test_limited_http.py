"""Trusted certificates are read only where they are needed: it takes 50 ms of each command."""

from __future__ import annotations

from ssl import SSLContext
from typing import Any

import pytest

from cli.service.limited_http import limited_client


@pytest.mark.parametrize(("url", "reads"), [("http://api:1", False), ("https://api:1", True)])
def test_certificates_are_read_for_a_service_with_tls(
    url: str, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    load = SSLContext.load_verify_locations

    def noted(context: SSLContext, *given: Any, **named: Any) -> None:
        read.append(named)
        load(context, *given, **named)

    monkeypatch.setattr(SSLContext, "load_verify_locations", noted)
    with limited_client(url, {}):
        assert bool(read) is reads
