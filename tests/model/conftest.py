"""Runs the model once for all its tests and prints the results at the end of the run."""

from __future__ import annotations

import pytest

from tests.model.configurations import SEARCHED
from tests.model.mutants import WORLDS
from tests.model.report import Report, run, table

ALL = (*SEARCHED, *WORLDS)
"""The relay's protocol must hold in the mutants' own worlds too."""
WALKS = 300
_REPORT = pytest.StashKey[Report]()


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    """Return the results of the searches and the walks; each mutant is searched in its test."""
    made = pytestconfig.stash[_REPORT] = run(ALL, (), WALKS)
    return made


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the states and the depth of each search."""
    made = config.stash.get(_REPORT, None)
    if made is not None:
        terminalreporter.section("model of the relay")
        for line in table(made):
            terminalreporter.write_line(line)
