-- One row per message that is out of order, has a wrong header, or both: its first such record.
-- matches are all whose order is promised, flagged those of order_late and of order_drifting.
WITH published_before AS (  -- Kafka had them before PostgreSQL listed them
    SELECT half_id
    FROM {entries}
    WHERE status = 'S'
),
late_keys AS (
    SELECT DISTINCT topic, partition, shard, key_hash
    FROM {flagged}
    WHERE late
),
firsts AS (  -- of copies only the first one is judged by its order
    SELECT
        half_id, topic, partition, shard, key_hash, rank,
        min(offset) AS offset,
        min_by(batch_no, offset) AS batch_no,
        min_by(published_at, offset) AS published_at
    FROM {matches}
    LEFT SEMI JOIN late_keys USING (topic, partition, shard, key_hash)
    LEFT ANTI JOIN published_before USING (half_id)
    GROUP BY half_id, topic, partition, shard, key_hash, rank
),
ordered AS (
    SELECT
        *,
        max(struct(rank, offset, half_id)) OVER (
            PARTITION BY topic, partition, shard, key_hash
            ORDER BY offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS behind
    FROM firsts
),
drifting AS (
    SELECT flagged.*
    FROM {flagged} AS flagged
    LEFT ANTI JOIN published_before ON published_before.half_id = flagged.half_id
    LEFT ANTI JOIN {entries} AS entry  -- they give the places where a manifest lacks commits
        ON NOT flagged.whole
        AND entry.half_id = flagged.half_id
        AND entry.shard = flagged.named_shard
        AND entry.batch_no = flagged.batch_no
        AND entry.index = flagged.index
    WHERE late IS NULL
),
drifted AS (
    SELECT half_id, min_by(struct(*), struct(topic, partition, offset)) AS drift, count(*) AS wrong
    FROM drifting
    GROUP BY half_id
),
copies AS (
    SELECT half_id, count(*) AS copies
    FROM {matches}
    LEFT SEMI JOIN drifted USING (half_id)
    GROUP BY half_id
),
faults AS (
    SELECT
        half_id, topic, partition, offset, key_hash, shard, batch_no, published_at,
        behind,
        NULL AS header
    FROM ordered
    WHERE behind.rank > rank
    UNION ALL
    SELECT
        half_id, drift.topic, drift.partition, drift.offset, drift.key_hash, drift.shard,
        drift.batch_no, drift.published_at,
        NULL,
        concat_ws('.', drift.named_shard, drift.batch_no, drift.index)
    FROM drifted
    JOIN copies USING (half_id)
    WHERE copies = wrong  -- no record names its place
),
found AS (
    SELECT
        min_by(struct(*), struct(behind IS NULL, topic, partition, offset)) AS fault,
        max(header) AS named
    FROM faults
    GROUP BY half_id
)
SELECT
    fault.half_id, own.message_id,
    fault.topic, fault.partition, fault.offset, fault.key_hash, fault.shard, fault.batch_no,
    struct(commit.xid, commit.n) AS position,
    commit.committed_at AS decided_at,
    fault.published_at AS record_time,
    CASE WHEN fault.behind IS NOT NULL THEN struct(
        other.message_id AS behind,
        other.offset AS behind_offset,
        array(later.xid, later.n) AS behind_position,
        fault.offset - other.offset AS offsets_apart
    ) END AS inversion,
    named
FROM found
JOIN {records} AS own
    ON own.topic = fault.topic AND own.partition = fault.partition AND own.offset = fault.offset
JOIN {commits} AS commit ON commit.half_id = fault.half_id
LEFT JOIN {records} AS other
    ON other.topic = fault.topic
    AND other.partition = fault.partition
    AND other.offset = fault.behind.offset
LEFT JOIN {commits} AS later ON later.half_id = fault.behind.half_id
ORDER BY topic, partition, offset
