"""For HTTP clients of servers on loopback: a client of a server with TLS reads all trusted
certificates when it is made, which takes 50 ms of processor time.
"""

from __future__ import annotations

from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Final

NO_TLS: Final = SSLContext(PROTOCOL_TLS_CLIENT)
"""Trusts no certificate: with it a client reaches only servers without TLS."""
