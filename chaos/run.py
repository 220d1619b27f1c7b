"""One run: start, perform the faults, drain, collect what is left, judge it."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from chaos.code_version import code_version, versions
from chaos.context import Context
from chaos.faults import FAULTS
from chaos.faults.kafka import release
from chaos.final_state.backlog import readable_backlog, wait_drained
from chaos.final_state.kafka import dump_kafka
from chaos.final_state.postgres import dump_postgres
from chaos.judge import FACTS, judge
from chaos.judge.verdict import Verdict
from chaos.profiles import Profile
from chaos.schedule import Fault, schedule
from chaos.spark_audit import spark_audit
from chaos.stack import stack
from chaos.workload.plan import TOPICS
from devservers.unprivileged import stand_ins_for

AT_ONCE: Final = 32
SERVERS: Final = ("postgres*", "kafka-*")

ShowLine = Callable[[str], None]


def run_and_judge(
    run: Path,
    profile: Profile,
    seed: int,
    say: ShowLine,
    *,
    faults: tuple[Fault, ...] | None = None,
    kafka: str = "",
) -> Verdict:
    """Perform a run in a folder that does not exist yet, judge it and write its verdict.

    ``faults`` replace those of the seed; ``kafka`` names a fetched release. An interrupted run is
    judged too. The servers' data are deleted.
    """
    try:
        perform(run, profile, seed, say, faults, kafka)
    finally:
        verdict = judge(run)
        verdict.write(run)
        for place in (*stand_ins_for(run), *(each for name in SERVERS for each in run.glob(name))):
            shutil.rmtree(place, ignore_errors=True)
    return verdict


def perform(
    run: Path,
    profile: Profile,
    seed: int,
    say: ShowLine,
    faults: tuple[Fault, ...] | None,
    kafka: str,
) -> None:
    """Perform a run and write everything that the judge needs to its folder.

    The ``run.json`` of a run that did not finish has no ``ended``.
    """
    faults = schedule(profile, seed) if faults is None else faults
    began = monotonic()
    run.mkdir(mode=0o711, parents=True)
    facts = _facts(profile, seed, kafka, faults)
    (run / FACTS).write_text(json.dumps(facts, indent=1))
    with stack(run, profile, seed, kafka) as context:
        say(f"started in {monotonic() - began:.1f} s")
        errors = _perform_faults(context, faults, say)
        left = _drain(context, say)
        for role in ("checker", "api", "endpoint"):
            _stop(context, role)
        folder = run / "leftovers"
        folder.mkdir()
        dump_postgres(folder, context.postgres.dsn())
        dump_kafka(folder, context.bootstrap, TOPICS)
        ended = {"errors": errors, "left": left, **_audited(context, say)}
    ended["seconds"] = round(monotonic() - began)
    (run / FACTS).write_text(json.dumps({**facts, "ended": ended}, indent=1))


def _perform_faults(context: Context, faults: Sequence[Fault], say: ShowLine) -> list[str]:
    """Perform the faults on schedule; return the errors of the harness itself."""
    began, errors = monotonic(), list[str]()
    with ThreadPoolExecutor(AT_ONCE, "faults") as pool:
        try:
            for number, fault in enumerate(faults, 1):
                context.stop.wait(max(0.0, began + fault.at - monotonic()))
                pool.submit(_perform, context, fault, errors)
                say(f"{monotonic() - began:5.0f} s  fault {number} of {len(faults)}: {fault.kind}")
            context.stop.wait(max(0.0, began + context.profile.seconds - monotonic()))
        finally:
            context.stop.set()
    for program in context.programs.values():
        program.failpoint = ""
        program.resume()
    return errors


def _perform(context: Context, fault: Fault, errors: list[str]) -> None:
    about: dict[str, Any] = {"kind": fault.kind, "target": fault.target}
    number = context.history.write("fault", "invoke", **about)
    try:
        met = FAULTS[fault.kind](context, fault)
    except Exception as error:
        errors.append(f"{fault.kind} {fault.target}: {error!r}")
        context.history.write("fault", "info", number, **about, error=repr(error))
    else:
        context.history.write("fault", "ok", number, **about, met=met)


def _drain(context: Context, say: ShowLine) -> dict[str, int]:
    """Stop the load and wait until the backlog is empty; what is held is released once more."""
    _stop(context, "client")
    look = partial(readable_backlog, context.postgres.dsn())
    left = wait_drained(look, context.profile.drain_seconds, say)
    if left.held > 0:
        release(context)
        left = wait_drained(look, context.profile.drain_seconds, say)
    return left._asdict()


def _stop(context: Context, role: str) -> None:
    with ThreadPoolExecutor() as pool:
        for program in context.of(role):
            pool.submit(program.stop)


def _audited(context: Context, say: ShowLine) -> dict[str, Any]:
    """Audit the stores with Spark if the profile asks for it."""
    if not context.profile.spark:
        return {}
    say("Spark reconciles the stores")
    url = context.postgres.dsn_of_role("outbox_reconcile")
    return {"spark": spark_audit(context.dir, url, context.bootstrap)}


def _facts(profile: Profile, seed: int, kafka: str, faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "seed": seed,
        "length": profile.seconds,
        "code_version": code_version(),
        "versions": versions(kafka),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release()},
        "planned": sorted({fault.kind for fault in faults}),
    }


def shortened(profile: Profile, seconds: float | None) -> Profile:
    """Return a profile with another length of its faults."""
    return profile if seconds is None else replace(profile, seconds=seconds)
