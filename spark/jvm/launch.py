"""The start of Spark's JVM: closed to what a user has set for another Spark, with its own log.

In local mode it is on loopback, so that the name of this host need not resolve.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkRuntimeError

from outbox.errors import ConfigurationError
from outbox.settings.environment import drop_variables, process_environment
from spark.jvm.child_processes import no_child_left
from spark.jvm.spark_errors import LINE, last_cause

OTHERS: Final = re.compile("(PY)?SPARK_(?!LOCAL_)[A-Z_]+")
"""Which Spark is started, with which words, settings and Python. `SPARK_LOCAL_DIRS` is a place."""
BY_SUBMIT: Final = "PYSPARK_GATEWAY_PORT"
"""Set where `spark-submit` has started the JVM."""
NOTICES: Final = re.compile(r"^(WARNING|Using|Setting|To adjust|Picked up|\S+ \S+ WARN).*\n", re.M)
OLD_JAVA: Final = "UnsupportedClassVersionError"


@contextmanager
def launching(log_file: Path, *, local: bool) -> Iterator[None]:
    """Start the JVM in the block. Raises ConfigurationError that names the cause of a failure."""
    if BY_SUBMIT not in process_environment():
        drop_variables(OTHERS)
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # noqa: TID251  Spark looks for it there
    began = log_file.stat().st_size if log_file.exists() else 0
    try:
        with _stderr_to(log_file), no_child_left():
            yield
    except (PySparkRuntimeError, Py4JError) as error:
        printed = log_file.read_bytes()[began:].decode(errors="replace")
        text = str(error) if isinstance(error, Py4JError) else NOTICES.sub("", printed)
        cause = "it needs Java 17 or newer" if OLD_JAVA in printed else last_cause(text)[:LINE]
        raise ConfigurationError(f"Spark did not start: {cause} (see {log_file})") from None


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect the stderr of a child process started in this block to the file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
