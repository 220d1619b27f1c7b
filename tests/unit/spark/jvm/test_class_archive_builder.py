"""A JVM that is late with its archive is ended: the folder that it writes into is gone by then."""

from __future__ import annotations

import subprocess

import pytest

from spark.jvm.class_archive_builder import ends_within


@pytest.mark.parametrize(("command", "in_time"), [("true", True), ("sleep 60", False)])
def test_no_process_outlives_the_set_up(command: str, in_time: bool) -> None:
    with subprocess.Popen(command.split()) as process:
        assert ends_within(process, 0.5 if command != "true" else 60) is in_time
        assert process.poll() is not None
