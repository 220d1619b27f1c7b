"""An installation without Spark says how to run an audit instead of failing inside it."""

from __future__ import annotations

import pytest

from cli.invocation.exit_codes import CommandFailed
from cli.service import programs


def test_without_spark_an_audit_names_the_image_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "find_spec", lambda _: None)
    with pytest.raises(CommandFailed, match="outbox-spark"):
        programs.run_reconcile("run")
