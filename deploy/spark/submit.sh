#!/bin/sh
# Runs the reconciliation on a Spark cluster: the words of `outbox reconcile` after the script's name, for example
#   OUTBOX_RECONCILE_SPARK_MASTER=spark://spark:7077 deploy/spark/submit.sh run --fail-on high
# The driver runs here, with our settings and secrets in its environment; the exit code is the job's own.
# SPARK_SUBMIT_OPTIONS holds further words for spark-submit, split at spaces.
set -eu
: "${OUTBOX_RECONCILE_SPARK_MASTER:?names the cluster, for example spark://spark:7077 or yarn}"
here=$(cd -- "$(dirname -- "$0")" && pwd)
jars=${OUTBOX_RECONCILE_JARS_DIR:-$here/../../.runtime/spark}
listed=$(printf '%s,' "$jars"/*.jar)
# shellcheck disable=SC2086  # the options are words
exec spark-submit \
  --master "$OUTBOX_RECONCILE_SPARK_MASTER" \
  --jars "${listed%,}" \
  --conf spark.log.level=WARN \
  ${SPARK_SUBMIT_OPTIONS:-} \
  "$here/reconcile.py" "$@"
