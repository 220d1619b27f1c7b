"""A copy of the project in which one text at a time is replaced, and its tests are run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from devservers.artifacts import RUNTIME
from outbox.settings.environment import process_environment
from tests.fixtures_databases import drop_template
from tests.fixtures_paths import PROJECT
from tests.integration.mutants.fixtures_mutant import ProductMutant
from tests.integration.mutants.fixtures_zygote import READY

ASSERTED: Final = re.compile(r"AssertionError|assert |Failed: (?!Timeout)")
"""How the message of a test begins that has noticed something, and did not merely break."""
LEFT_OUT: Final = ("__pycache__", "*.egg-info", "build", "node_modules", "target")


@dataclass(frozen=True)
class KillerRun:
    """What a run of tests has shown."""

    passed: int
    asserted: tuple[str, ...]
    """The messages of tests that failed by an assertion."""
    broken: tuple[str, ...]
    """The messages of tests that failed in another way, for example by an import."""
    output: str


class ProductCopy:
    """The project's files in another folder, and a process that runs tests there."""

    def __init__(
        self, folder: Path, postgres_url: str | None = None, kafka_servers: str | None = None
    ) -> None:
        self._home = folder / "project"
        self._folder = folder
        self._postgres_url, self._kafka_servers = postgres_url, kafka_servers
        self._ticks, self._runs = count(1), count(1)
        _copy(self._home)
        kept = {n: v for n, v in process_environment().items() if not n.startswith("PYTEST_")}
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.mutants.fixtures_zygote"],
            cwd=self._home,
            env={**kept, "PYTHONPATH": str(self._home), "PYTHONDONTWRITEBYTECODE": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._wait_for(READY)

    def close(self) -> None:
        """End the process."""
        self._zygote.communicate()

    @contextmanager
    def mutated(self, mutant: ProductMutant) -> Iterator[None]:
        """Run the block with the broken text in place of the correct one."""
        path = self._home / mutant.file
        correct = path.read_text("utf-8")
        self._write(path, correct.replace(mutant.rule, mutant.broken))
        try:
            yield
        finally:
            self._write(path, correct)

    def pass_all(self, killers: Iterable[str]) -> None:
        """Assert that tests pass on the product as it is."""
        ran = self.run(sorted(set(killers)))
        assert ran.passed, ran.output
        assert not ran.asserted + ran.broken, ran.output

    def notice(self, mutant: ProductMutant) -> None:
        """Assert that the killer of a mutant fails by an assertion, and in no other way."""
        with self.mutated(mutant):
            ran = self.run([mutant.killer], self._home / mutant.file)
        assert ran.asserted, ran.output
        assert not ran.broken, ran.output

    def run(self, killers: Sequence[str], changed: Path | None = None) -> KillerRun:
        """Run tests in the copy, one file of which may be changed, on the servers given."""
        number = next(self._runs)
        report, output = (self._folder / f"{number}.{kind}" for kind in ("xml", "txt"))
        options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--timeout", "60"]
        if self._postgres_url is not None:
            options.append(f"--postgres-url={self._postgres_url}")
        if self._kafka_servers is not None:
            options.append(f"--kafka-servers={self._kafka_servers}")
        arguments = [*options, f"--junitxml={report}", *killers]
        assert self._zygote.stdin is not None
        asked = {
            "number": number,
            "changed": None if changed is None else str(changed.resolve()),
            "arguments": arguments,
            "output": str(output),
        }
        self._zygote.stdin.write(json.dumps(asked) + "\n")
        self._zygote.stdin.flush()
        self._wait_for(number)
        return self._read(report, output.read_text("utf-8"))

    def _wait_for(self, number: int) -> None:
        assert self._zygote.stdout is not None
        while (answer := self._zygote.stdout.readline()) != f"{number}\n":
            assert answer, "the process that runs the tests has ended"

    def _read(self, report: Path, output: str) -> KillerRun:
        asserted, broken, passed = list[str](), list[str](), 0
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        for case in cases:
            failure, error = case.find("failure"), case.find("error")
            bad = failure if error is None else error
            if bad is None:
                passed += case.find("skipped") is None
                continue
            message = bad.get("message", "")
            noticed = error is None and ASSERTED.match(message)
            (asserted if noticed else broken).append(message)
        return KillerRun(passed, tuple(asserted), tuple(broken), output)

    def _write(self, path: Path, text: str) -> None:
        """Write a file with a time of its own, so that no older bytecode counts as current."""
        path.write_text(text, "utf-8")
        at = path.stat().st_mtime_ns + next(self._ticks) * 1_000_000_000
        os.utime(path, ns=(at, at))
        if self._postgres_url is not None and "migrations" in path.parts:
            drop_template(self._postgres_url)


def _copy(home: Path) -> None:
    home.mkdir(parents=True)
    for entry in PROJECT.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            shutil.copytree(entry, home / entry.name, ignore=shutil.ignore_patterns(*LEFT_OUT))
        else:
            shutil.copy2(entry, home)
    fetched = home / RUNTIME.name
    fetched.mkdir()
    for entry in RUNTIME.iterdir():
        (fetched / entry.name).symlink_to(entry)
