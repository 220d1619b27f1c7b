"""The example's services as programs that die at a step, once for each purchase that asks for it.

``python -m tests.e2e.acceptance.fixtures_dying_services account …`` has the arguments of the real
service. A purchase named ``die-STEP-N`` kills its process at that step; the member service dies
before its first commit of offsets, and its successor after its own first one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

import examples.account_service.__main__ as account_service
import examples.member_service.__main__ as member_service
from outbox.settings.environment import process_environment
from outbox_client import LocalTransactionState, Message, PreparedMessage, TransactionProducer

STEPS = ("prepare", "payment", "end", "answer")
"""A process dies before each of these."""
FOLDER = "TEST_DEATHS"
"""The variable with the folder that has a file for each death."""


def die_once(name: str) -> None:
    """Kill this process, unless one has died of this before."""
    try:
        (Path(process_environment()[FOLDER]) / name).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DyingProducer(TransactionProducer):
    """Dies at the step that the name of the transaction asks for."""

    def send_in_transaction(
        self,
        message: Message | Sequence[Message],
        local_transaction: Callable[[Any], Any] | None = None,
        wait: int = 0,
        attempts: int = 1,
    ) -> Any:
        assert isinstance(message, Message)
        name = str(message.transaction_id)

        def reach(step: str) -> None:
            if f"die-{step}-" in name:
                die_once(name)

        def paying(prepared: PreparedMessage) -> LocalTransactionState:
            assert local_transaction is not None
            reach("payment")
            state: LocalTransactionState = local_transaction(prepared)
            reach("end")
            return state

        reach("prepare")
        sent = super().send_in_transaction(message, paying, wait, attempts)
        reach("answer")
        return sent


class DyingConsumer(Consumer):
    """Dies before a commit of offsets, and in its next life after one."""

    def commit(self, *arguments: Any, **named: Any) -> Any:
        die_once("member before its offsets are committed")
        done = super().commit(*arguments, **named)
        die_once("member after its offsets are committed")
        return done


def main() -> None:
    """Run the service that the first argument names, with the rest as its own."""
    service = sys.argv.pop(1)
    if service == "account":
        vars(account_service)["TransactionProducer"] = DyingProducer
        account_service.main()
    else:
        vars(member_service)["Consumer"] = DyingConsumer
        member_service.main()


if __name__ == "__main__":
    main()
