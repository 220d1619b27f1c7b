"""The response to a check: it begins after a few interim ones (1xx), or not at all."""

from __future__ import annotations

from typing import Any, Final

import aiohttp
from aiohttp.client import ClientResponse
from aiohttp.connector import Connection

INTERIM_MAX: Final = 8


class CheckResponse(ClientResponse):
    """Without a limit, an endpoint that sends interim responses only would keep this process busy.

    The library reads them until the call's time is over.
    """

    async def start(self, connection: Connection) -> ClientResponse:
        """Read the head. Raises ClientPayloadError after too many interim responses."""
        protocol = connection.protocol
        assert protocol is not None
        read, left = protocol.read, INTERIM_MAX

        async def read_few() -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise aiohttp.ClientPayloadError("too many interim responses")
            return await read()

        protocol.read = read_few  # type: ignore[method-assign]
        try:
            return await super().start(connection)
        finally:
            del protocol.read
