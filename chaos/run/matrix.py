"""The same profile and seed on several releases of Kafka, and one table of their verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from chaos.judge.verdict import Verdict
from chaos.profiles.profile import Profile
from chaos.run.runner import ShowLine
from chaos.run.slices import run_and_judge, thin_out
from chaos.run.tables import replace_table
from chaos.run.totals import total_of
from cli.invocation.exit_codes import CommandFailed
from devservers.artifacts import KAFKA_RELEASES, PROJECT_ROOT, kafka_version

PAGE: Final = PROJECT_ROOT / "docs" / "chaos.md"
EVIDENCE: Final = PROJECT_ROOT / "docs" / "evidence"
BEGIN, END = "<!-- written by outbox-chaos matrix {profile} -->", "<!-- end of {profile} -->"
HEAD: Final = (
    "| Kafka | verdict | kills | faults | messages | violated | back after: least p50, longest "
    "| load | code |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRun:
    """One release of the matrix and its verdict."""

    release: str
    verdict: Verdict


def fetched(releases: Sequence[str]) -> list[str]:
    """Return the wanted releases; none given: those that are fetched. Raises CommandFailed."""
    missing = [each for each in releases if not kafka_version(each)]
    if missing:
        wanted = "; ".join(f"make kafka KAFKA={each}" for each in missing)
        raise CommandFailed(f"not fetched: {wanted}")
    found = list(releases) or [each for each in KAFKA_RELEASES if kafka_version(each)]
    if not found:
        raise CommandFailed(f"no release is fetched: make kafka KAFKA={KAFKA_RELEASES[0]}")
    return found


def run_matrix(
    root: Path, profile: Profile, releases: Sequence[str], seed: int, say: ShowLine
) -> list[MatrixRun]:
    """Run and judge the profile on each release, in a folder of its own, also after a violation."""
    done = []
    for release in releases:
        say(f"Kafka {release}")
        folder = root / release
        verdict = run_and_judge(folder, replace(profile, kafka=release), seed, say)
        if verdict.verdict == "PASS":
            thin_out(folder)
        done.append(MatrixRun(release=release, verdict=verdict))
    return done


def record(
    runs: Sequence[MatrixRun], profile: str, evidence: Path = EVIDENCE, page: Path = PAGE
) -> None:
    """Write each run's totals beside the other evidence, and the table of all of them.

    Raises CommandFailed if the page has no place for the profile's table.
    """
    for each in runs:
        path = evidence / f"matrix-{profile}-{each.release}.json"
        path.write_text(total_of([each.verdict]).json())
    begin, end = (each.format(profile=profile) for each in (BEGIN, END))
    replace_table(page, begin, end, table(_recorded(evidence, profile)))


def table(totals: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table, by release."""
    return [*HEAD, *(_row(release, totals[release]) for release in sorted(totals))]


def table_of(runs: Sequence[MatrixRun]) -> list[str]:
    """Return the table of these runs alone."""
    return table({each.release: json.loads(total_of([each.verdict]).json()) for each in runs})


def _row(release: str, found: Mapping[str, Any]) -> str:
    violated = [name for name, each in found["invariants"].items() if each["violations"]]
    back = found["recoveries"].values()
    times = "-"
    if back:
        slowest = max(each["longest"] for each in back)
        times = f"{min(each['p50'] for each in back)} s, {slowest} s"
    cells = (
        release,
        found["verdict"],
        found["killed"],
        found["faulted"],
        found["messages"],
        ", ".join(violated) or "none",
        times,
        " to ".join(f"{each:.0f}" for each in found.get("load", ())) or "-",
        f"`{found['code_version']}`",
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _recorded(evidence: Path, profile: str) -> dict[str, Mapping[str, Any]]:
    prefix = f"matrix-{profile}-"
    return {
        path.stem.removeprefix(prefix): json.loads(path.read_text())
        for path in evidence.glob(f"{prefix}[0-9]*.json")
    }
