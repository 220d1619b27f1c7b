"""Checks that records are in the order of their commits, and name their place in it (I6).

Ranks come from the commit log. The relay's batch header is judged, and trusted only where the
checksums have proven it. One cheap pass over all matches flags what may be wrong; only the keys and
batches of flagged rows are examined in detail. Ranks are comparable within a shard, and all
messages of a key belong to one shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message import Resolution
from outbox.messages.message_id import SHARDS
from spark.checks.queries import query
from spark.columns import manifests
from spark.columns.staging import stage_counted
from spark.findings.finding import Finding, record_fields
from spark.findings.finding_class import Cause


def findings(
    matches: DataFrame,
    commits: DataFrame,
    records: DataFrame,
    listed: DataFrame,
    unlisted: Collection[int],
    stage_uri: str,
) -> Iterator[Finding]:
    """Yield a finding for every message out of order or with a wrong place; by place, lazily.

    ``listed`` are the manifests. Entries are decoded only if something was flagged.
    """
    promised = ordered_matches(matches, unlisted)
    late = query("order_late", matches=promised)
    drifting = query("order_drifting", matches=promised, manifests=listed, shards=SHARDS)
    flagged, seen = stage_counted(
        late.unionByName(drifting, allowMissingColumns=True),
        f"{stage_uri}/disorder",
        rows=F.count("*"),
    )
    if seen["rows"]:
        found = query(
            "order_details",
            matches=promised,
            flagged=flagged,
            entries=manifests.entries(listed),
            records=records,
            commits=commits,
        )
        yield from map(_finding, found.toLocalIterator(prefetchPartitions=True))


def ordered_matches(matches: DataFrame, unlisted: Collection[int]) -> DataFrame:
    """Return the matches whose order is promised: neither repairs nor what no manifest lists.

    The newest manifests of a shard of ``unlisted`` are lost, and with them the place of a record.
    """
    listed = ~F.col("shard").isin(list(unlisted))
    return matches.where("NOT redriven").where(F.col("batch_no").isNotNull() | listed)


def _finding(row: Any) -> Finding:
    """Return the finding of a message; the worse of two faults names it."""
    inversion, named = row["inversion"], row["named"]
    drift = {} if named is None else {"outbox_batch": named or "absent"}
    return Finding.about_message(
        Cause.ORDER_INVERSION_KEY if inversion else Cause.POSITION_DRIFT_HEADER,
        row["half_id"],
        message_id=row["message_id"],
        **record_fields(row),
        decision=Resolution.COMMIT,
        evidence={**(inversion.asDict() if inversion else {}), **drift},
    )
