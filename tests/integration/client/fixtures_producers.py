"""Both clients behind one face, so that every test of the client is a test of both.

``ProducerOnLoop`` runs the asynchronous client on an event loop of its own thread, and waits for
each call as the other client does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from threading import Thread, get_ident
from typing import Any, Self, TypeVar, cast

from outbox_client import (
    AsyncTransactionProducer,
    Ending,
    EndResult,
    LocalTransactionState,
    Message,
    OutboxError,
    PreparedMessage,
    TransactionProducer,
    TransactionSendResult,
)

Result = TypeVar("Result")
Local = Callable[[PreparedMessage], LocalTransactionState | None]
OpenProducer = Callable[..., TransactionProducer]


class ListenerOnLoop:
    """Runs a plain listener as an asynchronous one."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    async def execute_local_transaction(
        self, message: PreparedMessage, /
    ) -> LocalTransactionState | None:
        return cast(
            "LocalTransactionState | None", self._listener.execute_local_transaction(message)
        )

    async def check_local_transaction(self, check: Any, /) -> Any:
        return self._listener.check_local_transaction(check)


class ProducerOnLoop:
    """The asynchronous client, called from any thread."""

    def __init__(self, url: str, group: str, listener: Any = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        named = ListenerOnLoop(listener) if listener else None
        self._producer = AsyncTransactionProducer(url, group, listener=named, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if get_ident() == self._thread.ident:  # called by a local transaction
            self._closed_early = self._loop.create_task(self._producer.close())
            return
        if self._loop.is_closed():
            return
        self._call(self._producer.close())
        self._call(_end_of_other_calls())
        self._call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def thread(self) -> int | None:
        return self._thread.ident

    def send_in_transaction(
        self, message: Message, local: Local | None = None, wait: int = 0, attempts: int = 1
    ) -> TransactionSendResult:
        run = _asynchronous(local) if local else None
        return self._call(self._producer.send_in_transaction(message, run, wait, attempts))

    def prepare(self, message: Message) -> PreparedMessage:
        return self._call(self._producer.prepare(message))

    def end(
        self,
        message_id: str,
        decision: LocalTransactionState,
        reason: str | None = None,
        wait: int = 0,
    ) -> EndResult:
        return self._call(self._producer.end(message_id, decision, reason, wait))

    def prepare_batch(self, messages: Sequence[Message]) -> list[PreparedMessage | OutboxError]:
        return self._call(self._producer.prepare_batch(messages))

    def end_batch(self, endings: Sequence[Ending], wait: int = 0) -> list[EndResult | OutboxError]:
        return self._call(self._producer.end_batch(endings, wait))

    def _call(self, call: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


def open_on_threads(url: str, group: str, **options: Any) -> TransactionProducer:
    """Open the client for threads."""
    return TransactionProducer(url, group, **options)


def open_on_asyncio(url: str, group: str, **options: Any) -> TransactionProducer:
    """Open the client for asyncio."""
    return cast("TransactionProducer", ProducerOnLoop(url, group, **options))


def thread_of(producer: TransactionProducer) -> int | None:
    """Return the thread in which this thread's calls run their local transaction."""
    return producer.thread if isinstance(producer, ProducerOnLoop) else get_ident()


async def _end_of_other_calls() -> None:
    """Wait until the calls that the close has failed have said so: a stopped loop says nothing."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=60)


def _asynchronous(
    local: Local,
) -> Callable[[PreparedMessage], Awaitable[LocalTransactionState | None]]:
    async def run(prepared: PreparedMessage) -> LocalTransactionState | None:
        return local(prepared)

    return run
