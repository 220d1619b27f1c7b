"""Which partition a key belongs to, asked of Kafka's own code.

SQL has no murmur2 of Kafka's kind, and to write it in SQL would cost more than the record's scan.
The connector's jar brings the very function that Kafka's producer calls, and Spark calls static
functions from the code it generates: 0.15 µs a key. PySpark offers no such call, so the expression
is made in the JVM; on Spark Connect, where there is none, a key has no home.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.utils import is_remote

from spark.columns.murmur2 import POSITIVE

MODULO: Final = "home % (last + 1)"
"""The partition of a key, in a topic whose last partition that is."""
KAFKA: Final = "org.apache.kafka.common.utils.Utils"
NULL_WITHOUT: Final = (True, True, True)
"""Null for null, may be null, always the same."""


def is_known() -> bool:
    """Tell whether keys have a home here."""
    return not is_remote()


def expected_partition(key: Column) -> Column:
    """Return the key's murmur2 without its sign: modulo the partition count it is the partition.

    Null without a key, and on Spark Connect. Source: ``BuiltInPartitioner.partitionForKey``.
    """
    if not is_known():
        return F.lit(None).cast("int")
    return _called(key, "murmur2").bitwiseAND(POSITIVE)


def _called(argument: Any, function: str) -> Column:
    session = SparkSession.getActiveSession()
    assert session is not None
    jvm: Any = session._jvm
    expressions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    call = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        loader.loadClass(KAFKA),
        getattr(getattr(jvm.org.apache.spark.sql.types, "IntegerType$"), "MODULE$"),
        function,
        sequence([expressions.expression(argument._jc)]),
        sequence([]),
        *NULL_WITHOUT,
        jvm.scala.Option.empty(),
    )
    column: Column = type(argument)(expressions.column(call))
    return column
