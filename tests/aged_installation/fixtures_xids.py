"""A PostgreSQL whose xids are past 2^32.

``pg_resetwal`` is not among the embedded binaries. After a stop in order PostgreSQL reads its next
xid from ``pg_control`` alone, and a higher epoch leaves the 32 bits that rows carry as they are.
"""

from __future__ import annotations

import struct
from pathlib import Path

import psycopg

from devservers.postgres import EmbeddedPostgres

NEXT_XID_AT = 64
"""ControlFileData: 40 bytes before the copy of the checkpoint, which has 24 before its next xid."""
CRC_AT = range(200, 512, 4)


def pass_2_32_xids(server: EmbeddedPostgres) -> None:
    """Restart a running server with a next xid that is 2^32 higher."""
    server.stop()
    _raise_epoch(server.home / "data" / "global" / "pg_control")
    server.start()
    with psycopg.connect(server.database_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def _raise_epoch(control: Path) -> None:
    raw = bytearray(control.read_bytes())
    crc_at = next(at for at in CRC_AT if struct.unpack_from("<I", raw, at)[0] == crc32c(raw[:at]))
    (next_xid,) = struct.unpack_from("<Q", raw, NEXT_XID_AT)
    struct.pack_into("<Q", raw, NEXT_XID_AT, next_xid + (1 << 32))
    struct.pack_into("<I", raw, crc_at, crc32c(raw[:crc_at]))
    control.write_bytes(raw)


def crc32c(data: bytes | bytearray) -> int:
    """Return the CRC-32C (Castagnoli) that closes pg_control."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
