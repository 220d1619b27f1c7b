"""The partition that Kafka's own code chooses for a key.

Spark SQL has no murmur2 as Kafka defines it, and an SQL version would cost more than the scan of
the record. The connector's jar contains the function that Kafka's producer calls. Spark calls
static functions from its generated code, which costs 0.15 µs per key. PySpark offers no such call,
so the expression is made in the JVM. Spark Connect has no JVM here: a key then has no expected
partition.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

POSITIVE: Final = 0x7FFFFFFF
MODULO: Final = "home % (last + 1)"
"""The partition of a key in a topic; ``home`` is the hash, ``last`` the topic's last partition."""
KAFKA: Final = "org.apache.kafka.common.utils.Utils"
STATIC_INVOKE: Final = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
NULL_WITHOUT: Final = (True, True, True)
"""Flags of the call: null for null, may return null, deterministic."""


def expected_partition(key: Column) -> Column:
    """Return the key's murmur2 without its sign; modulo the partition count it is the partition.

    Null without a key, and on Spark Connect. Source: ``BuiltInPartitioner.partitionForKey``.
    """
    if is_remote():
        return F.lit(None).cast("int")
    return _static_call(key, "murmur2").bitwiseAND(POSITIVE)


def _static_call(argument: Any, function: str) -> Column:
    """Return the call of a static function; a name in parts would be looked up part by part."""
    jvm: Any = SparkContext._jvm
    expressions = getattr(jvm, "org.apache.spark.sql.classic.ExpressionUtils")
    sequence = jvm.PythonUtils.toSeq
    loader = getattr(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    call = getattr(jvm, STATIC_INVOKE)(
        loader.loadClass(KAFKA),
        getattr(getattr(jvm, "org.apache.spark.sql.types.IntegerType$"), "MODULE$"),
        function,
        sequence([expressions.expression(argument._jc)]),
        sequence([]),
        *NULL_WITHOUT,
        getattr(jvm, "scala.Option").empty(),
    )
    column: Column = type(argument)(expressions.column(call))
    return column
