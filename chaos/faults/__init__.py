"""All faults by kind. Each is a function that performs one and undoes it.

It blocks for about the fault's seconds and returns whether it met something: a process or a server
that was alive, a lost tail that is not empty, a record that was held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from chaos.context import Context
from chaos.faults import failover, kafka, postgres, processes
from chaos.schedule import Fault

FAULTS: Final[Mapping[str, Callable[[Context, Fault], bool]]] = {
    "kill": processes.kill,
    "failpoint": processes.kill_at_failpoint,
    "pause": processes.pause,
    "postgres_stop": postgres.stop,
    "backend_kill": postgres.kill_backend,
    "long_transaction": postgres.leave_transaction_open,
    "promote_synchronous": failover.promote_synchronous,
    "promote_asynchronous": failover.promote_asynchronous,
    "restore": failover.restore,
    "broker_kill": kafka.kill_brokers,
    "refuse_size": kafka.refuse_size,
}
