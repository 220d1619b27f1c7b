"""The errors for an unusable Spark Connect server."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbox.errors import ConfigurationError
from spark.jvm.session import SessionSettings, spark_session


@pytest.mark.parametrize(
    "address", ["http://spark:15002", "local", "sc://spark:15002/x;token=word"]
)
def test_an_address_that_is_none_is_refused_and_not_repeated(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PySpark sets it for good; later tests want their own JVM.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    settings = SessionSettings(
        master="local[1]", jars_dir=tmp_path, log_file=tmp_path / "log", remote=address
    )
    with (
        pytest.raises(ConfigurationError, match="OUTBOX_RECONCILE_SPARK_REMOTE") as refused,
        spark_session(settings),
    ):
        pass
    assert "spark:15002" not in str(refused.value)
