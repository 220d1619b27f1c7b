"""A name server of the test: it answers some names as the test says, hangs for others."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

HANGS = ".hangs"
"""The last part of the names for which the name server does not answer."""

_look_up = socket.getaddrinfo


@dataclass
class AskedNames:
    """The names for which the name server hangs now."""

    names: list[str] = field(default_factory=list)
    first: Event = field(default_factory=Event)
    """Set once there is one."""


def answer_names(monkeypatch: pytest.MonkeyPatch, names: Mapping[str, Sequence[str]]) -> None:
    """Answer look-ups of these names; the mapping may change later. Others are looked up."""

    def look_up(host: Any, port: Any, *given: Any, **named: Any) -> list[Any]:
        if host not in names:
            return _look_up(host, port, *given, **named)
        return [
            info for address in names[host] for info in _look_up(address, port, *given, **named)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@contextmanager
def hanging_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[AskedNames]:
    """Let names that end in HANGS hang for the block; yield those that were asked for."""
    asked, end = AskedNames(), Event()

    def look_up(host: Any, *given: Any, **named: Any) -> list[Any]:
        if str(host).endswith(HANGS):
            asked.names.append(str(host))
            asked.first.set()
            end.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "the name server does not answer")
        return _look_up(host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        yield asked
    finally:
        end.set()
