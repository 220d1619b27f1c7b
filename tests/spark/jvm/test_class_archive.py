"""The archive that the set-up recorded is the one that Spark's JVM maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark.jvm.class_archive import archive_path
from spark.jvm.session import RUNTIME_JARS
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK


def test_the_jvm_loads_its_classes_from_what_the_set_up_recorded(session: SparkSession) -> None:
    archive = archive_path(RUNTIME_JARS.resolve())
    assert archive is not None
    jvm: Any = session._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    assert archive.name in Path(f"/proc/{process}/maps").read_text(encoding="utf-8")
