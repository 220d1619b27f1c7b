"""One run: start everything, follow the schedule of faults, heal, drain, collect what is left."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any, Final

from chaos.code_version import code_version, git_commit, versions
from chaos.faults import nemeses_by_kind
from chaos.faults.nemesis import Nemesis
from chaos.final_state import collect
from chaos.final_state.backlog import wait_drained
from chaos.judge.spark import spark_opinion
from chaos.profiles import Profile
from chaos.run_context import ChaosContext
from chaos.schedule import Fault, schedule
from chaos.servers.stage import GROUP, Stage, stage
from chaos.workload.plan import TOPICS
from chaos.workload.truth_collector import write_truths
from outbox.clock import SystemClock

AT_ONCE: Final = 32
TICK_SECONDS: Final = 1.0

Say = Callable[[str], None]


def perform(
    run: Path,
    profile: Profile,
    seed: int,
    say: Say,
    faults: tuple[Fault, ...] | None = None,
) -> None:
    """Perform a run and leave everything the judge needs in its folder, which must not exist.

    ``faults`` replace those of the seed. A run that did not come to its end has no ``ended`` in its
    ``run.json``.
    """
    if faults is None:
        faults = schedule(profile, seed)
    require_nemeses(faults)
    began = monotonic()
    run.mkdir(mode=0o711, parents=True)
    facts = _facts(profile, seed)
    _write(run, facts)
    with stage(run, profile, seed) as staged:
        say(f"started in {monotonic() - began:.1f} s")
        errors = _break(staged, faults, say)
        drained = _drain(staged, say)
        _stop_programs(staged.world)
        write_truths(run)
        _collect(staged)
        ended = {
            "seconds": round(monotonic() - began, 1),
            "faults": len(faults),
            "errors": errors,
            "ends": dict(staged.world.processes.ends),
            "seen": {reader.name: reader.seen for reader in staged.readers},
            **drained,
            **_spark(staged, say),
        }
    _write(run, {**facts, "ended": ended})


def _break(staged: Stage, faults: Sequence[Fault], say: Say) -> list[str]:
    """Perform the faults in time; return what went wrong in the harness itself."""
    world, began = staged.world, monotonic()
    breaker = FaultInjector(world)
    with ThreadPoolExecutor(AT_ONCE, "nemesis") as pool:
        try:
            running = breaker.follow(faults, began, pool, _progress(staged, began, say))
            world.stop.wait(max(0.0, began + world.profile.seconds - monotonic()))
        finally:
            world.stop.set()
        for each in running:
            each.result()
    breaker.heal()
    return breaker.errors


def require_nemeses(faults: Sequence[Fault]) -> None:
    """Raise LookupError if a fault has no nemesis."""
    missing = sorted({fault.kind for fault in faults} - nemeses_by_kind().keys())
    if missing:
        raise LookupError(f"no nemesis for {', '.join(missing)}")


class FaultInjector:
    """Performs a schedule with the nemeses that there are."""

    def __init__(self, world: ChaosContext) -> None:
        self._world = world
        self._nemeses = nemeses_by_kind()
        self.errors: list[str] = []

    def follow(
        self,
        faults: Sequence[Fault],
        began: float,
        pool: ThreadPoolExecutor,
        progress: Callable[[int], None],
    ) -> list[Future[None]]:
        """Start each fault at its moment, in a thread of the pool."""
        running = []
        for number, fault in enumerate(faults):
            self._world.stop.wait(max(0.0, began + fault.at - monotonic()))
            running.append(pool.submit(self._inject, self._nemeses[fault.kind], fault))
            progress(number)
        return running

    def heal(self) -> None:
        """Undo whatever may be left."""
        for nemesis in {id(each): each for each in self._nemeses.values()}.values():
            try:
                nemesis.heal(self._world)
            except Exception as error:
                self.errors.append(f"heal {type(nemesis).__name__}: {error!r}")
        self._world.processes.heal()
        if self._world.proxies is not None:
            self._world.proxies.heal()

    def _inject(self, nemesis: Nemesis, fault: Fault) -> None:
        history = self._world.history
        about: dict[str, Any] = {"kind": fault.kind, "target": fault.target}
        number = history.write("fault", "invoke", **about, args=dict(fault.args))
        try:
            facts = nemesis.inject(self._world, fault)
        except Exception as error:
            self.errors.append(f"{fault.kind} {fault.target}: {error!r}")
            history.write("fault", "info", number, **about, error=repr(error))
        else:
            history.write("fault", "ok", number, **about, facts=facts)


def _progress(staged: Stage, began: float, say: Say) -> Callable[[int], None]:
    """Return what tells, about once a second, how far a run is."""
    told = [began]

    def progress(number: int) -> None:
        now = monotonic()
        if now - told[0] >= TICK_SECONDS:
            told[0] = now
            world, seen = staged.world, staged.readers[0].seen
            kills = world.processes.kills()
            say(f"{now - began:5.0f} s  fault {number + 1}  {kills} kills  {seen} records")

    return progress


def _drain(staged: Stage, say: Say) -> dict[str, Any]:
    """End the load and wait until everything has come to its end."""
    world = staged.world
    world.processes.stop("client", seconds=3.0)
    left, seconds = wait_drained(world.postgres.dsn(), world.profile.drain_seconds, say)
    say(f"drained in {seconds:.1f} s: {left}")
    return {"drain_seconds": round(seconds, 2), "left": left._asdict()}


def _stop_programs(world: ChaosContext) -> None:
    for role in ("checker", "api", "endpoint"):
        world.processes.stop(role)


def _collect(staged: Stage) -> None:
    world = staged.world
    collect(world.dir, world.postgres.dsn(), world.bootstrap, TOPICS)


def _spark(staged: Stage, say: Say) -> dict[str, Any]:
    """Ask Spark for its opinion, if the profile wants it."""
    world = staged.world
    if not world.profile.spark:
        return {}
    say("Spark reconciles the stores")
    return {"spark": spark_opinion(world.dir, world.postgres.dsn(), world.bootstrap)}


def _facts(profile: Profile, seed: int) -> dict[str, Any]:
    clock = SystemClock()
    return {
        "profile": profile.name,
        "seed": seed,
        "length": profile.seconds,
        "code_version": code_version(),
        "git": git_commit(),
        "versions": versions(),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release()},
        "topics": TOPICS,
        "policy": dict(GROUP),
        "started": {"unix": clock.now().timestamp(), "mono": clock.monotonic()},
    }


def _write(run: Path, facts: Mapping[str, Any]) -> None:
    (run / "run.json").write_text(json.dumps(facts, indent=1))
