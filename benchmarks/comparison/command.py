"""Measures this tree, its last release, RocketMQ and the parts alone, in turn, again and again.

While one is measured, all processes of the others are paused. Writes the measurements as JSON
(docs/evidence/bench.json), pictures, and the tables of docs/performance.md; ``--draft FOLDER``
writes them there instead. The whole takes up to a quarter of an hour, ``--quick`` three to eight
minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison.installation import Installation
from benchmarks.comparison.page import written
from benchmarks.comparison.plan import QUICK, WHOLE, Plan, Row, Subject
from benchmarks.comparison.plot import plots
from benchmarks.comparison.references import References
from benchmarks.comparison.results import OURS, RELEASE, medians, rounded
from benchmarks.comparison.rocketmq_subject import RocketMQSubject
from benchmarks.measure.cpu_time import cpu_seconds
from benchmarks.measure.machine import busy_seconds, facts, hardware, report
from benchmarks.measure.pause import end_in_order, resume
from benchmarks.measure.previous_release import checkout, commit_of, previous_release
from benchmarks.rivals.rocketmq.servers import BROKER, VERSION, fetch, rocketmq
from benchmarks.speed.service import outbox_dev
from chaos.run.code_version import code_version, versions
from cli.invocation.exit_codes import CommandFailed
from devservers.artifacts import PROJECT_ROOT
from devservers.errors import EmbeddedError

PAGE: Final = "docs/performance.md"
DATA: Final = "docs/evidence/bench.json"
IMAGES: Final = "docs/images"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return 0."""
    asked = _parser().parse_args(arguments)
    end_in_order()
    plan = replace(QUICK if asked.quick else WHOLE, value_bytes=asked.size)
    if asked.rounds:
        plan = replace(plan, rounds=asked.rounds)
    commit = asked.release or previous_release()
    try:
        if "rocketmq" not in asked.without:
            fetch()
        document = compared(plan, commit, without=set(asked.without))
    except (EmbeddedError, CommandFailed) as error:
        raise SystemExit(f"{error} (--without leaves out what is not to be had here)") from None
    keep(document, asked.draft or PROJECT_ROOT)
    return 0


def compared(plan: Plan, commit: str | None, without: set[str]) -> dict[str, Any]:
    """Measure every subject in each round; return the document."""
    report("comparison", settings={"rounds": plan.rounds, "scale": plan.scale}, **facts())
    began, load = time.monotonic(), os.getloadavg()
    with ExitStack() as stack:
        subjects = [*started(stack, plan, commit, without)]
        with foreign_work() as foreign:
            rows = [
                row for number in range(plan.rounds) for row in one_round(subjects, number, plan)
            ]
    return {
        "command": "make bench" + (" QUICK=1" if plan.scale == QUICK.scale else ""),
        "rounds": plan.rounds,
        "seconds": round(time.monotonic() - began),
        "machine": {**facts(), **hardware()},
        "load": [round(each, 1) for each in (load[0], os.getloadavg()[0])],
        **foreign,
        "versions": {**versions(), "RocketMQ": VERSION},
        "settings": {
            "values": f"{plan.value_bytes} bytes",
            "keys": "1 000",
            "RocketMQ": BROKER["flushDiskType"],
            "all others": "the defaults of `outbox dev`",
        },
        "code_version": code_version(),
        "release": commit_of(commit) if commit else "none",
        "medians": rounded(medians(rows)),
        "rows": rounded(rows),
    }


@contextmanager
def foreign_work() -> Iterator[dict[str, int]]:
    """Yield what others took of the cores during the block: processes here, other machines."""
    found: dict[str, int] = {}
    began, own = time.monotonic(), cpu_seconds(os.getpid())
    busy, stolen = busy_seconds()
    yield found
    capacity = (time.monotonic() - began) * (os.cpu_count() or 1)
    busy_then, stolen_then = busy_seconds()
    others = busy_then - busy - (cpu_seconds(os.getpid()) - own)
    found["others_cpu_percent"] = max(0, round(others / capacity * 100))
    found["stolen_cpu_percent"] = round((stolen_then - stolen) / capacity * 100)


def started(
    stack: ExitStack, plan: Plan, commit: str | None, without: set[str]
) -> Iterator[Subject]:
    """Start each subject and pause it."""
    running = stack.enter_context(awake_at_the_end())
    parts = References(running)
    yield _asleep(Installation(OURS, running, with_clients=True))
    if "parts" not in without:
        yield parts
    if commit and "release" not in without:
        tree = stack.enter_context(checkout(commit))
        other = stack.enter_context(awake_at_the_end(tree))
        yield _asleep(Installation(RELEASE, other, with_clients=False))
    if "rocketmq" not in without:
        yield _asleep(RocketMQSubject(stack.enter_context(rocketmq(plan.value_bytes))))


@contextmanager
def awake_at_the_end(
    tree: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Run an `outbox dev` for the block; at its end all processes go on, so that they can stop."""
    with outbox_dev(tree=tree, settings=settings) as running:
        try:
            yield running
        finally:
            resume(running["pids"].values())


def one_round(subjects: Sequence[Subject], number: int, plan: Plan) -> Iterator[Row]:
    """Measure each subject once; each round begins with another one."""
    first = number % len(subjects)
    for subject in (*subjects[first:], *subjects[:first]):
        subject.awaken()
        try:
            for row in subject.measure(plan):
                named = {"subject": subject.name, "round": number, **row}
                report("measured", **rounded(named))
                yield named
        finally:
            subject.sleep()


def keep(document: dict[str, Any], project: Path) -> None:
    """Write the document, its pictures and its tables below a folder."""
    for folder in (DATA, f"{IMAGES}/x", PAGE):
        (project / folder).parent.mkdir(parents=True, exist_ok=True)
    (project / DATA).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    for name, picture in plots(document).items():
        (project / IMAGES / name).write_text(picture)
    page = (PROJECT_ROOT / PAGE).read_text("utf-8")
    (project / PAGE).write_text(written(page, document), "utf-8")
    for name in (DATA, PAGE, IMAGES):
        print(f"wrote {project / name}", file=sys.stderr)


def _asleep(subject: Subject) -> Subject:
    subject.sleep()
    return subject


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of smaller loads")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--release", help="the commit of the last release; default: the last tag")
    parser.add_argument("--size", type=int, default=WHOLE.value_bytes, help="bytes of each value")
    parser.add_argument(
        "--without", nargs="*", default=[], choices=["release", "rocketmq", "parts"]
    )
    parser.add_argument("--draft", type=Path, help="a folder for all that is written")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
