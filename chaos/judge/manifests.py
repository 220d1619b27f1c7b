"""Manifests: one chain per shard, equal to the commit log and the records, without a gap."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from chaos.judge.final_state import FinalState, Row
from chaos.judge.findings import Findings

PUBLISHED, HELD = "P", "K"
BATCH = "BATCH"


def judge_manifests(left: FinalState, findings: Findings) -> None:
    """I8, I9, I10."""
    places = {record["batch"]: record for record in left.records}
    listed: dict[str, str] = {}
    last = _last_listings(left)
    for shard, manifests in sorted(left.manifests.items()):
        manifests.sort(key=lambda manifest: manifest["offset"])
        _chain(left, findings, shard, manifests)
        _runs(findings, places, manifests, last)
        for manifest in manifests:
            _records(findings, places, listed, manifest, last)
    for batch, record in places.items():
        # Kafka may show a batch whose manifest it has aborted: then PostgreSQL has learned it.
        holds = listed.get(batch) == record["id"] or record["id"] in left.already
        findings.check("I8", holds, "no manifest lists this record", batch=batch, id=record["id"])
    findings.check("I8", len(places) == len(left.records), "two records at one position of a batch")
    _cursor(left, findings)


def _last_listings(left: FinalState) -> dict[str, str]:
    """Return the last batch that lists each message as published.

    A batch that Kafka dropped after its commit was published again, as a repair.
    """
    return {
        message_id: f"{manifest['shard']}.{manifest['batch_no']}"
        for manifests in left.manifests.values()
        for manifest in sorted(manifests, key=lambda each: each["offset"])
        for message_id, status in manifest.get("entries", ())
        if status == PUBLISHED
    }


def _records(
    findings: Findings,
    places: dict[str, Row],
    listed: dict[str, str],
    manifest: Row,
    last: dict[str, str],
) -> None:
    for index, (message_id, status) in enumerate(manifest.get("entries", ())):
        if status != PUBLISHED:
            continue
        batch = f"{manifest['shard']}.{manifest['batch_no']}.{index}"
        record = places.get(batch)
        holds = record is not None and record["id"] == message_id
        holds = holds or (record is None and last[message_id] != batch.rpartition(".")[0])
        findings.check("I8", holds, "a listed record is missing", batch=batch, id=message_id)
        listed[batch] = message_id


def _runs(
    findings: Findings, places: dict[str, Row], manifests: list[Row], last: dict[str, str]
) -> None:
    """The offset runs of a manifest are the places of the previous batch's records."""
    for previous, manifest in pairwise(manifests):
        runs = manifest.get("before")
        if runs is None or "entries" not in previous:
            continue
        listed = {(t, part, first + n) for t, part, first, count in runs for n in range(count)}
        batch = f"{previous['shard']}.{previous['batch_no']}."
        named = (places.get(f"{batch}{index}") for index in range(len(previous["entries"])))
        seen = {(r["topic"], r["partition"], r["offset"]) for r in named if r is not None}
        repaired = any(
            status == PUBLISHED and f"{last[message_id]}." != batch
            for message_id, status in previous["entries"]
        )
        same = seen <= listed if repaired else seen == listed
        findings.check("I8", same, "the offset runs name other places", batch=batch[:-1])


def _chain(left: FinalState, findings: Findings, shard: int, manifests: list[Row]) -> None:
    began = left.began.get(shard, {})
    crc, batch_no, gen = (began.get(name) or 0 for name in ("crc", "batch_no", "gen"))
    if (began.get("manifest_offset") or 0) < 0:
        crc = 0  # at_least_once came before: the first manifest follows none
    to = (began.get("position") or 0, began.get("position_n") or 0)
    seen: set[str] = set()
    for manifest in manifests:
        about = {"shard": shard, "offset": manifest["offset"]}
        if "error" in manifest:
            findings.check("I9", False, manifest["error"], **about)
            continue
        linked = (manifest["named_shard"], manifest["batch_no"], manifest["prev_crc"])
        findings.check("I9", linked == (shard, batch_no + 1, crc), "the chain is broken", **about)
        findings.check("I9", manifest["gen"] >= gen, "an older owner wrote later", **about)
        after, end = tuple(manifest["after"]), tuple(manifest["to"])
        recovered = _is_recovered(left, manifest)
        rewound = recovered or bool(left.lost.ops or left.lost.halves)
        follows = after == to or (rewound and after < to)
        findings.check("I9", follows and end >= after, "a gap", **about)
        published = [each for each, status in manifest["entries"] if status == PUBLISHED]
        twice = seen.intersection(published) if manifest["kind"] != "REPAIR" else ()
        findings.check("I9", not twice, "published twice", ids=sorted(twice)[:3], **about)
        seen.update(published)
        if (
            manifest["kind"] == BATCH
            and not recovered
            and not left.is_log_retired(after[0], end[0])
        ):
            entries = [each for each, _ in manifest["entries"]]
            same = entries == _range(left, shard, after, end)
            findings.check("I9", same, "differs from the commit log", **about)
        crc, batch_no, gen, to = manifest["crc"], manifest["batch_no"], manifest["gen"], end


def _is_recovered(left: FinalState, manifest: Row) -> bool:
    """Return whether PostgreSQL learned this batch from Kafka, so that it has its old position."""
    return any(
        status == PUBLISHED and (message_id in left.already or message_id in left.lost)
        for message_id, status in manifest["entries"]
    )


def _range(left: FinalState, shard: int, after: tuple[int, ...], end: tuple[int, ...]) -> list[str]:
    log = left.commit_log.get(shard, [])
    first, last = (
        bisect_right(log, (position, "\U0010ffff"), key=lambda entry: (entry[0], "\U0010ffff"))
        for position in (after, end)
    )
    return [message_id for _, message_id in log[first:last]]


def _cursor(left: FinalState, findings: Findings) -> None:
    for shard, log in left.commit_log.items():
        row = left.progress.get(shard)
        findings.check("I10", row is not None, "commits without a cursor", shard=shard)
        if row is None:
            continue
        ends = left.watermarks.get(f"outbox.progress/{shard}")
        offset = row["manifest_offset"] or 0
        inside = ends is not None and ends["start"] <= offset <= ends["end"]
        findings.check("I10", inside, "the cursor is outside its log", shard=shard, offset=offset)
        below = {
            message_id
            for manifest in left.manifests.get(shard, ())
            if manifest["offset"] < offset
            for message_id, _ in manifest.get("entries", ())
        }
        cursor = (row["position"], row["position_n"])
        for position, message_id in log:
            if position <= cursor:
                holds = message_id in below or message_id in left.already
                findings.check(
                    "I10",
                    holds,
                    "passed by the cursor, but in no manifest",
                    id=message_id,
                    shard=shard,
                )
