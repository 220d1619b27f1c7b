"""What a session of our own is given, by how much there is to read and where it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark.jvm.session import LONG_JVM, QUICK_JVM, QUICK_RECORDS, SessionSettings, session_settings


@pytest.mark.parametrize(
    ("master", "records", "jvm"),
    [
        ("local[2]", QUICK_RECORDS - 1, QUICK_JVM),
        ("local[2]", QUICK_RECORDS, LONG_JVM),
        ("spark://cluster:7077", QUICK_RECORDS, None),
    ],
    ids=["small", "large", "of a cluster"],
)
def test_only_a_jvm_that_we_start_is_given_options(
    master: str, records: int, jvm: str | None
) -> None:
    settings = _settings(master, records)
    assert session_settings(settings).get("spark.driver.extraJavaOptions") == jvm
    assert "spark.executor.extraJavaOptions" not in session_settings(settings)


def test_an_operators_options_win() -> None:
    settings = _settings("local[2]", QUICK_RECORDS, {"spark.driver.extraJavaOptions": "-Xint"})
    assert session_settings(settings)["spark.driver.extraJavaOptions"] == "-Xint"


def _settings(master: str, records: int, extra: dict[str, str] | None = None) -> SessionSettings:
    return SessionSettings(
        master=master,
        jars_dir=Path("jars"),
        log_file=Path("spark.log"),
        expected_records=records,
        extra=extra or {},
    )
