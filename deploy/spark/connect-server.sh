#!/bin/sh
# Runs a Spark Connect server with our five jars, for audits with OUTBOX_RECONCILE_SPARK_REMOTE=sc://localhost:15002.
# It has no password: it listens on loopback alone. Master, memory and a wider address go into SPARK_SUBMIT_OPTIONS,
# words for spark-submit, split at spaces; the last one of each kind wins. Options of its JVM go into SPARK_SUBMIT_OPTS.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
jars=${OUTBOX_RECONCILE_JARS_DIR:-$here/../../.runtime/spark}
listed=$(printf '%s,' "$jars"/*.jar)
export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:--XX:+UseParallelGC}"
# shellcheck disable=SC2086  # the options are words
exec spark-submit \
  --class org.apache.spark.sql.connect.service.SparkConnectServer \
  --jars "${listed%,}" \
  --conf spark.log.level=WARN \
  --conf spark.sql.codegen.cache.maxEntries=5000 \
  --conf spark.connect.grpc.binding.address=127.0.0.1 \
  ${SPARK_SUBMIT_OPTIONS:-} \
  spark-internal
