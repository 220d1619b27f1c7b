"""Measures this tree and RocketMQ in turn, then an audit of what was sent.

While one is measured, all processes of the other are paused. Prints each measurement as a line of
JSON, and writes the tables of docs/performance.md (``--page FILE``: of another page).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure.audit import audit
from benchmarks.measure.machine import facts, report
from benchmarks.measure.pause import end_in_order, resume
from benchmarks.page import medians, written
from benchmarks.plan import QUICK, WHOLE, Plan, Row, Subject
from benchmarks.subjects.outbox_dev import outbox_dev
from benchmarks.subjects.outbox_subject import OutboxSubject
from benchmarks.subjects.rocketmq.servers import VERSION, fetch, rocketmq
from benchmarks.subjects.rocketmq_broker import RocketMQSubject
from chaos.code_version import code_version, versions
from cli.invocation.exit_codes import CommandFailed
from devservers.artifacts import PROJECT_ROOT
from devservers.errors import EmbeddedError
from outbox.settings.environment import drop_variables

PAGE = PROJECT_ROOT / "docs" / "performance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0."""
    asked = _parser().parse_args(arguments)
    end_in_order()
    drop_variables()
    plan = QUICK if asked.quick else WHOLE
    if asked.rounds:
        plan = replace(plan, rounds=asked.rounds)
    try:
        if not asked.without_rocketmq:
            fetch()
        document = measured(plan, beside_rocketmq=not asked.without_rocketmq)
    except (EmbeddedError, CommandFailed) as error:
        raise SystemExit(f"{error} (--without-rocketmq measures only this tree)") from None
    asked.page.write_text(written(PAGE.read_text("utf-8"), document), "utf-8")
    print(f"wrote {asked.page}", file=sys.stderr)
    return 0


def measured(plan: Plan, *, beside_rocketmq: bool) -> dict[str, Any]:
    """Measure every subject in each round; return what the page shows."""
    began, load = time.monotonic(), os.getloadavg()[0]
    with ExitStack() as stack:
        running = stack.enter_context(outbox_dev())
        stack.callback(lambda: resume(running["pids"].values()))
        ours = OutboxSubject(running)
        ours.sleep()
        subjects: list[Subject] = [ours]
        if beside_rocketmq:
            other = RocketMQSubject(stack.enter_context(rocketmq(plan.value_bytes)))
            other.sleep()
            subjects.append(other)
        rows = [row for n in range(plan.rounds) for row in one_round(subjects, n, plan)]
        ours.awaken()
        audited = audit(running)
        report("audit", **audited)
    return {
        "rounds": plan.rounds,
        "value_bytes": plan.value_bytes,
        "seconds": round(time.monotonic() - began),
        "machine": facts(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "versions": {**versions(), "RocketMQ": VERSION},
        "code_version": code_version(),
        "medians": medians(rows),
        "audit": audited,
    }


def one_round(subjects: Sequence[Subject], number: int, plan: Plan) -> Iterator[Row]:
    """Measure each subject once; each round begins with another one."""
    first = number % len(subjects)
    for subject in (*subjects[first:], *subjects[:first]):
        subject.awaken()
        try:
            for row in subject.measure(plan):
                report("measured", subject=subject.name, round=number, **row)
                yield {"subject": subject.name, **row}
        finally:
            subject.sleep()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of smaller loads")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--without-rocketmq", action="store_true")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that is written")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
