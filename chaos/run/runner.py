"""One run: start, perform the scheduled faults, heal, drain, collect the final state."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from chaos.faults.refusals import Refusals
from chaos.faults.run_context import ChaosContext
from chaos.final_state import collect_final_state
from chaos.final_state.backlog import readable_backlog, wait_drained
from chaos.final_state.kafka import records_of
from chaos.judge import FACTS
from chaos.profiles.profile import Profile
from chaos.profiles.schedule import Fault, schedule
from chaos.run.code_version import code_version, git_commit, versions
from chaos.run.fault_injector import FaultInjector, require_nemeses
from chaos.run.spark_audit import spark_opinion
from chaos.run.testbed import CHECK_MAX_OF, GROUP, Age, Testbed, testbed
from chaos.workload.plan import TOPICS
from chaos.workload.truth_collector import collect_truth
from outbox.clock import SystemClock
from outbox.settings.catalogue import Settings

AT_ONCE: Final = 32


TICK_SECONDS: Final = 1.0
MAX_AGE: Final = "OUTBOX_MAX_AGE_SECONDS"
DEFAULT_MAX_AGE: Final = Settings.model_fields["max_age_seconds"].default
READER_SECONDS: Final = 60.0
"""How long a live reader may receive nothing before it has everything."""
LOOK_SECONDS: Final = 0.1
_NEVER: Final = threading.Event()


ShowLine = Callable[[str], None]


def perform(
    run: Path,
    profile: Profile,
    seed: int,
    say: ShowLine,
    faults: tuple[Fault, ...] | None = None,
    age: Age | None = None,
) -> None:
    """Perform a run and write everything that the judge needs to its folder, which must not exist.

    ``faults`` replace those of the seed, ``age`` lets the installation live before the run. The
    ``run.json`` of a run that did not finish has no ``ended``.
    """
    if faults is None:
        faults = schedule(profile, seed)
    require_nemeses(faults)
    began = monotonic()
    run.mkdir(mode=0o711, parents=True)
    facts = _facts(profile, seed)
    _write(run, facts)
    with testbed(run, profile, seed, age) as bed:
        say(f"started in {monotonic() - began:.1f} s")
        load = [_load()]
        errors = _perform_faults(bed, faults, say)
        load.append(_load())
        drained = _drain(bed, say)
        _stop_programs(bed.context)
        collect_truth(run)
        _collect(bed)
        _let_readers_finish(bed, say)
        ended = {
            "seconds": round(monotonic() - began, 1),
            "faults": len(faults),
            "errors": errors,
            "load": [*load, _load()],
            "ends": dict(bed.context.processes.ends),
            "seen": {reader.name: reader.seen for reader in bed.readers},
            **drained,
            **_spark(bed, say),
        }
    _write(run, {**facts, "ended": ended})


def _perform_faults(bed: Testbed, faults: Sequence[Fault], say: ShowLine) -> list[str]:
    """Perform the faults on schedule; return the errors of the harness itself."""
    context, began = bed.context, monotonic()
    injector = FaultInjector(context)
    with ThreadPoolExecutor(AT_ONCE, "nemesis") as pool:
        try:
            running = injector.follow(faults, began, pool, _progress(bed, began, say))
            context.stop.wait(max(0.0, began + context.profile.seconds - monotonic()))
        finally:
            context.stop.set()
        for each in running:
            each.result()
    injector.heal()
    return injector.errors


def _progress(bed: Testbed, began: float, say: ShowLine) -> Callable[[int], None]:
    """Return a function that shows the progress of a run about once per second."""
    shown = [began]

    def progress(number: int) -> None:
        now = monotonic()
        if now - shown[0] >= TICK_SECONDS:
            shown[0] = now
            context, seen = bed.context, bed.readers[0].seen
            kills = context.processes.kills()
            say(f"{now - began:5.0f} s  fault {number + 1}  {kills} kills  {seen} records")

    return progress


def _drain(bed: Testbed, say: ShowLine) -> dict[str, Any]:
    """Stop the load and wait until the backlog is empty; what is held is released once more."""
    context = bed.context
    context.processes.stop("client", seconds=3.0)
    look = partial(readable_backlog, context.postgres.dsn())
    most = context.profile.drain_seconds
    left, seconds = wait_drained(look, most, say)
    if left.held > 0:
        Refusals().heal(context)
        left, more = wait_drained(look, most, say)
        seconds += more
    say(f"drained in {seconds:.1f} s: {left}")
    return {"drain_seconds": round(seconds, 2), "left": left._asdict()}


def _stop_programs(context: ChaosContext) -> None:
    for role in ("checker", "api", "endpoint"):
        context.processes.stop(role)


def _collect(bed: Testbed) -> None:
    context = bed.context
    collect_final_state(context.dir, context.postgres.dsn(), context.bootstrap, context.topics)


def _let_readers_finish(bed: Testbed, say: ShowLine) -> None:
    """Wait until the live readers have received what Kafka has; the judge notices if not."""
    for reader in bed.readers:
        wanted = records_of(bed.context.dir, reader.name, TOPICS)
        say(f"the reader {reader.name} has {reader.seen} of {wanted} records")
        seen, since = -1, monotonic()
        while reader.seen < wanted and monotonic() - since < READER_SECONDS:
            if reader.seen > seen:
                seen, since = reader.seen, monotonic()
            _NEVER.wait(LOOK_SECONDS)


def _spark(bed: Testbed, say: ShowLine) -> dict[str, Any]:
    """Audit the stores with Spark if the profile asks for it."""
    context = bed.context
    if not context.profile.spark:
        return {}
    say("Spark reconciles the stores")
    settings = context.profile.settings
    url = context.postgres.dsn_of_role("outbox_reconcile")
    found = spark_opinion(context.dir, url, context.bootstrap, settings)
    return {"spark": found}


def _facts(profile: Profile, seed: int) -> dict[str, Any]:
    clock = SystemClock()
    return {
        "profile": profile.name,
        "seed": seed,
        "length": profile.seconds,
        "pace": profile.pace,
        "code_version": code_version(),
        "git": git_commit(),
        "versions": versions(profile.kafka),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release()},
        "must_reach": list(profile.must_reach),
        "policy": {
            **GROUP,
            "check_max_of": dict(CHECK_MAX_OF),
            "max_age_seconds": float(profile.settings.get(MAX_AGE, DEFAULT_MAX_AGE)),
        },
        "started": {"unix": clock.now().timestamp(), "mono": clock.monotonic()},
    }


def _load() -> float:
    """Return how many processes wanted a core in the last minute, on average."""
    return round(os.getloadavg()[0], 1)


def _write(run: Path, facts: Mapping[str, Any]) -> None:
    (run / FACTS).write_text(json.dumps(facts, indent=1))
