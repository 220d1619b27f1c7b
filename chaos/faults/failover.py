"""Replaces PostgreSQL: by its standby, or by a base backup that has not its newest commits.

The address stays the same: the other server's data take the place of the old ones.
"""

from __future__ import annotations

import shutil
import threading
from typing import Final

from chaos.context import Context
from chaos.schedule import Fault
from chaos.servers.lost_tails import (
    Contents,
    contents,
    contents_of_stopped,
    lost_tail,
    wait_every_shard_has_a_cursor,
    write_tail,
)
from chaos.servers.nodes import PostgresNode
from chaos.servers.postgres_copies import copy_running, exchange
from chaos.servers.standby import PrimaryAndStandby

OTHER: Final = "postgres-other"
_NEVER: Final = threading.Event()


def promote_synchronous(context: Context, fault: Fault) -> bool:
    """Kill the primary and promote a synchronous standby: nothing acknowledged is lost."""
    return _promote(context, fault, synchronous=True)


def promote_asynchronous(context: Context, fault: Fault) -> bool:
    """Kill the primary and promote a standby that stopped following some seconds before."""
    return _promote(context, fault, synchronous=False)


def restore(context: Context, fault: Fault) -> bool:
    """Take a base backup of the running server, and restore it after the fault's seconds."""
    with context.postgres_alone:
        if not wait_every_shard_has_a_cursor(context.postgres):
            return False
        copy = PostgresNode(context.dir / OTHER, context.server_thread)
        copy_running(context.postgres, copy)
        _NEVER.wait(fault.seconds)
        context.postgres.stop_immediate()
        return _replaced(context, copy, lose=True)


def _promote(context: Context, fault: Fault, *, synchronous: bool) -> bool:
    with context.postgres_alone:
        if not wait_every_shard_has_a_cursor(context.postgres):
            return False
        home = context.dir / OTHER
        pair = PrimaryAndStandby(context.postgres, home, context.server_thread)
        pair.follow()
        if synchronous:
            pair.make_synchronous()
        else:
            pair.stop_following()
        _NEVER.wait(fault.seconds)
        context.postgres.server.kill()
        pair.promote().server.stop()
        return _replaced(context, pair.standby, lose=not synchronous)


def _replaced(context: Context, other: PostgresNode, *, lose: bool) -> bool:
    """Start the stopped other server's data in place of the stopped server's.

    With ``lose`` what they lack is written down, and the fault has met something if that is not
    empty.
    """
    try:
        exchange(context.postgres, other)
        context.postgres.start()
        after: Contents = contents(context.postgres.dsn())
        tail = lost_tail(contents_of_stopped(other, context.server_thread), after) if lose else []
    finally:
        shutil.rmtree(other.server.home, ignore_errors=True)
    if tail:
        write_tail(context.dir, tail)
    return bool(tail) or not lose
