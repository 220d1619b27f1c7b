"""Each block of code of a page is run by a test, but for those named here, which are only read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures_paths import PROJECT
from tests.unit.docs.fixtures_pages import EDITED, name

BLOCK: Final = re.compile(r"^( *)```[a-z]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
RUN_BY: Final = {
    "README.md": ("tests/e2e/pages/test_readme.py",),
    "docs/barrier.md": (
        "tests/integration/client/test_clients_page.py",
        "tests/integration/client/barrier/test_barrier_recipes.py",
    ),
    "docs/check-endpoint.md": (
        "tests/integration/client/test_clients_page.py",
        "tests/e2e/command/test_examples.py",
    ),
    "docs/clients.md": (
        "tests/integration/client/test_clients_page.py",
        "tests/integration/client/calls/test_private_authority.py",
        "tests/e2e/languages/test_languages.py",
        "tests/e2e/languages/test_own_copy.py",
    ),
    "docs/consumers.md": ("tests/integration/client/inbox/test_consumers_page.py",),
    "docs/containers.md": ("tests/containers/fixtures_page.py",),
    "docs/audit.md": ("tests/unit/docs/reference/test_reconciliation_page.py",),
    "docs/operate.md": ("tests/e2e/command/test_examples.py",),
    "docs/rest.md": ("tests/e2e/pages/test_rest_page.py",),
    "docs/runbooks.md": ("tests/integration/checker/relay/refusals/test_damaged_rows.py",),
    "docs/security.md": (
        "tests/integration/kafka/fixtures_secured_broker.py",
        "tests/integration/postgres/sessions/test_tls.py",
    ),
    "docs/semantics.md": ("tests/integration/client/test_clients_page.py",),
    "docs/sql-mode.md": ("tests/integration/postgres/messages/test_sql_outbox.py",),
    "outbox_client/README.md": ("tests/integration/client/test_clients_page.py",),
}
"""The tests that run the blocks of each page."""

HOURS: Final = "its programs run for long, some for hours; tests run each of them with less"
ONLY_READ: Final = {
    "CONTRIBUTING.md": {
        "pip-compile --generate-hashes": "it asks a registry for every package",
    },
    "deploy/spark/README.md": {
        "python3.11 -m venv env": "it needs a cluster of YARN",
        "PATH=.venv/bin:$PATH": "tests/spark/jvm starts the same server on a port of its own",
    },
    "docs/barrier.md": {
        "-- oracle_": "no registry has the server; the page says so",
        "-- sqlserver_": "no registry has the server; the page says so",
    },
    "docs/evidence.md": {
        "make chaos ": HOURS,
        "PASS  kill": "the verdict of a run that was done",
    },
    "docs/architecture.md": {
        "flowchart LR": "a drawing",
        ".venv/bin/pytest tests/model": HOURS,
    },
    "docs/performance.md": {"make bench": HOURS},
    "docs/operate.md": {"OTEL_EXPORTER_OTLP_ENDPOINT": "the address of the reader's own collector"},
}
"""By page and by the beginning of the block: why no test runs it."""
COMMAND: Final = re.compile(r"^(?:.*&& *)?make ([a-z-]+)", re.MULTILINE)
MODULE: Final = re.compile(r"\bpython -m ([\w.]+)")
MAKEFILE: Final = (PROJECT / "Makefile").read_text("utf-8")


def blocks(page: Path) -> list[str]:
    """Return the blocks of code of a page."""
    return [text.strip() for _, text in BLOCK.findall(page.read_text("utf-8"))]


WITH_BLOCKS: Final = [page for page in EDITED if blocks(page)]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name)
def test_the_blocks_of_a_page_are_run_or_named_here(page: Path) -> None:
    read = ONLY_READ.get(name(page), {})
    found = blocks(page)
    assert [each for each in read if not any(block.startswith(each) for block in found)] == []
    run = [block for block in found if not block.startswith(tuple(read))]
    assert bool(run) is (name(page) in RUN_BY)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name)
def test_what_a_block_calls_is_there(page: Path) -> None:
    text = "\n".join(blocks(page))
    assert [each for each in COMMAND.findall(text) if f"\n{each}: " not in MAKEFILE] == []
    modules = {each.replace(".", "/") for each in MODULE.findall(text)} - {"venv", "pip"}
    missing = [
        each
        for each in modules
        if not any((PROJECT / f"{each}{end}").exists() for end in (".py", "/__main__.py"))
    ]
    assert missing == []
