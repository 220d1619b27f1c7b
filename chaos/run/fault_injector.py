"""Performs the faults of a schedule, each at its time, and heals whatever is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import Any

from chaos.faults import nemeses_by_kind
from chaos.faults.nemesis import Nemesis
from chaos.faults.run_context import ChaosContext
from chaos.profiles.schedule import Fault


def require_nemeses(faults: Sequence[Fault]) -> None:
    """Raise LookupError if a fault has no nemesis."""
    missing = sorted({fault.kind for fault in faults} - nemeses_by_kind().keys())
    if missing:
        raise LookupError(f"no nemesis for {', '.join(missing)}")


class FaultInjector:
    """Performs the faults of a schedule."""

    def __init__(self, context: ChaosContext) -> None:
        self._context = context
        self._nemeses = nemeses_by_kind()
        self.errors: list[str] = []

    def follow(
        self,
        faults: Sequence[Fault],
        began: float,
        pool: ThreadPoolExecutor,
        progress: Callable[[int], None],
    ) -> list[Future[None]]:
        """Start each fault at its time, in a thread of the pool."""
        running = []
        for number, fault in enumerate(faults):
            self._context.stop.wait(max(0.0, began + fault.at - monotonic()))
            running.append(pool.submit(self._inject, self._nemeses[fault.kind], fault))
            progress(number)
        return running

    def heal(self) -> None:
        """Undo everything that a fault may have left."""
        for nemesis in {id(each): each for each in self._nemeses.values()}.values():
            try:
                nemesis.heal(self._context)
            except Exception as error:
                self.errors.append(f"heal {type(nemesis).__name__}: {error!r}")
        self._context.processes.heal()
        if self._context.proxies is not None:
            self._context.proxies.heal()

    def _inject(self, nemesis: Nemesis, fault: Fault) -> None:
        history = self._context.history
        about: dict[str, Any] = {"kind": fault.kind, "target": fault.target}
        number = history.write("fault", "invoke", **about, args=dict(fault.args))
        try:
            facts = nemesis.inject(self._context, fault)
        except Exception as error:
            self.errors.append(f"{fault.kind} {fault.target}: {error!r}")
            history.write("fault", "info", number, **about, error=repr(error))
        else:
            history.write("fault", "ok", number, **about, facts=facts)
