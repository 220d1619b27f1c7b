"""A client with one of the usual mistakes fails the kit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fixtures_paths import PROJECT
from tests.integration.client.conformance import test_checks, test_sends
from tests.integration.client.conformance.fixtures_drivers import python_driver
from tests.integration.client.fixtures_contract_server import ContractService
from tests.unit.outbox_client.fixtures_checks import OTHER_SECRET

pytestmark = pytest.mark.postgres


def mutated(place: Path, file: str, *changes: tuple[str, str]) -> Path:
    """Return a folder with a copy of the client in which texts are replaced."""
    shutil.copytree(PROJECT / "outbox_client", place / "outbox_client")
    path = place / "outbox_client" / file
    text = path.read_text("utf-8")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, "utf-8")
    return place


def test_a_client_that_repeats_a_final_answer_fails(
    service: ContractService, service_url: str, tmp_path: Path
) -> None:
    change = ("if not error.retryable:", "if error.retryable:")
    mutant = mutated(tmp_path, "calls/retry.py", change)
    final = test_sends.FINAL["422"]
    with python_driver("threads", mutant) as driver, pytest.raises(AssertionError):
        test_sends.test_a_refused_prepare_is_not_repeated_and_runs_no_local_transaction(
            driver, service, service_url, final
        )


def test_a_client_that_reads_before_it_fences_fails(local_database: str, tmp_path: Path) -> None:
    fence = """        if not self._fence(db, check):
            return LocalTransactionState.UNKNOWN
"""
    changes = (
        (fence, ""),
        (
            "        return barrier.answer(outcome,",
            f"{fence}        return barrier.answer(outcome or 'fenced',",
        ),
    )
    mutant = mutated(tmp_path, "sqlalchemy.py", *changes)
    database = {"kind": "postgresql", "url": local_database}
    with python_driver("threads", mutant) as driver, pytest.raises(AssertionError):
        test_checks.test_a_check_waits_for_an_open_local_transaction_and_reads_after_its_commit(
            driver, database
        )


def test_a_client_that_reads_before_it_verifies_fails(tmp_path: Path) -> None:
    early = """        request = read_check_request(body)
        if any(check.producer_group != self._producer_group for check in request.checks):
            raise Refused(403, "early")
        if not any("""
    mutant = mutated(tmp_path, "checks/signature.py", ("        if not any(", early))
    with python_driver("threads", mutant) as driver, pytest.raises(AssertionError):
        test_checks.test_the_signature_is_verified_before_anything_else_is_read(
            driver, test_checks.FOREIGN, OTHER_SECRET, 401
        )
