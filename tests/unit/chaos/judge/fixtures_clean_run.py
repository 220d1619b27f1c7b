"""A clean run, which tests then break.

On shard 1 it has six commits of one key, two of them of one transaction and one after a
contradiction. It also has a rollback, a refused prepare, and four transactions that checks decided,
one of them prepared by a call without an answer. Times are seconds since the start of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID

from outbox.messages.manifest import Entry, Kind, Manifest, Position, crc_of, encode
from outbox.messages.message import DecidedBy, Resolution
from outbox.postgres.schema.codes import DECIDED_BY_CODE, DECISION_CODE
from tests.unit.chaos.judge.fixtures_run_folder import MONO, SHARD, Row, RunFolder, half, name, tx

UNIX: Final = 1_700_000_000.0
TOPIC: Final = "chaos.three"
KEY: Final = ("key-0", "a2V5LTA=", b"key-0".hex())
NO_HEADERS: Final = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
COMMIT, ROLLBACK = "COMMIT", "ROLLBACK"
BY_PRODUCER: Final = (COMMIT, COMMIT, COMMIT, COMMIT, COMMIT, COMMIT, ROLLBACK)
BY_CHECK: Final = (COMMIT, ROLLBACK, COMMIT, ROLLBACK)
BATCHES: Final = ((0, 1, 2), (3, 4), (5, 7, 9))
"""The messages of each Kafka transaction, in commit order."""


def clean_run(path: Path) -> RunFolder:
    """Return a run without a violation."""
    run = RunFolder(path=path)
    run.facts = _facts()
    for number, decision in enumerate(BY_PRODUCER):
        _prepare(run, number)
        _end_by_producer(run, number, decision)
    for number, decision in enumerate(BY_CHECK, len(BY_PRODUCER)):
        _prepare(run, number, answered=number != 10)
        _decide_by_check(run, number, decision)
    _contradict(run, 4)
    _refuse(run)
    _list_commits(run)
    _publish(run)
    _read(run)
    _break_something(run)
    return run


def resealed(run: RunFolder) -> None:
    """Recompute the chain of the manifests and the cursor after a test has changed a manifest."""
    crc = 0
    for number, manifest in enumerate(run.tables["manifests"], 1):
        manifest.update(batch_no=number, prev_crc=crc, offset=2 * (number - 1))
        manifest["crc"] = crc = _crc(manifest)
    last = run.tables["manifests"][-1]
    run.tables["progress"][0].update(manifest_offset=last["offset"] + 1, crc=crc)
    run.watermarks["outbox.progress/1"].update(stable=last["offset"] + 2, end=last["offset"] + 2)


def _facts() -> Row:
    return {
        "profile": "kill",
        "seed": 1,
        "length": 20.0,
        "git": "0" * 40,
        "code_version": "abc",
        "versions": {},
        "machine": {},
        "topics": {TOPIC: 1},
        "policy": {
            "transaction_timeout_seconds": 2,
            "check_max": 3,
            "check_interval_seconds": 1,
            "max_age_seconds": 80,
        },
        "started": {"unix": UNIX, "mono": MONO},
        "ended": {
            "seconds": 30.0,
            "faults": 1,
            "errors": [],
            "ends": {"checker:kill": 1, "api:stopped": 2},
            "seen": {},
            "drain_seconds": 1.0,
            "left": {"prepared": 0, "committed": 0, "parked": 0, "held": 0},
        },
    }


def _prepare(run: RunFolder, number: int, *, answered: bool = True) -> None:
    at = float(number)
    item = {"tx": tx(number), "topic": TOPIC, "key": KEY[1], "sha": f"sha {number}"}
    asked = [{**item, "size": 5, "headers": NO_HEADERS}]
    run.note("client-0", at, "prepare", "invoke", group="chaos-batch", items=asked, about=number)
    outcome = {"items": [{"id": name(number), "replayed": False}]}
    e, fields = ("ok", outcome) if answered else ("info", {"error": "reset"})
    run.note("client-0", at + 0.1, "prepare", e, about=number, **fields)
    run.tables["halves"].append(
        {
            "id": name(number),
            "half_id": half(number),
            "prepared_at": UNIX + at + 0.05,
            "content_digest": 40 + number,
            "producer_group": "chaos-batch",
            "topic": TOPIC,
            "tx": tx(number),
            "immunity": None,
            "key": KEY[2],
            "sha": f"sha {number}",
        }
    )


def _local(run: RunFolder, number: int, decision: str) -> None:
    run.note("truth", 29.0, "local", "ok", items=[{"tx": tx(number), "decided": decision}])


def _decide(run: RunFolder, number: int, decision: str, by: DecidedBy, at: float) -> None:
    run.tables["ops"].append(
        {
            "half_id": half(number),
            "xid": 2_000 + number,
            "decided_at": UNIX + at,
            "decision": DECISION_CODE[Resolution(decision)],
            "decided_by": DECIDED_BY_CODE[by],
        }
    )


def _end_by_producer(run: RunFolder, number: int, decision: str) -> None:
    at = number + 0.2
    _local(run, number, decision)
    item = {"id": name(number), "d": decision}
    state = "COMMITTED" if decision == COMMIT else "ROLLED_BACK"
    run.note("client-0", at, "end", "invoke", items=[item], about=number)
    answer = {"status": 200, "already": False, "state": state}
    run.note("client-0", at + 0.2, "end", "ok", items=[answer], about=number)
    _decide(run, number, decision, DecidedBy.PRODUCER, at + 0.1)


def _contradict(run: RunFolder, number: int) -> None:
    item = {"id": name(number), "d": ROLLBACK}
    run.note("client-0", 15.0, "end", "invoke", items=[item], about=number, again=True)
    answer = {"status": 409, "slug": "already-decided", "decision": COMMIT}
    run.note("client-0", 15.1, "end", "ok", items=[answer], about=number, again=True)


def _decide_by_check(run: RunFolder, number: int, decision: str) -> None:
    _local(run, number, decision)
    for attempt, (outcome, at) in enumerate((("UNKNOWN", 2.2), (decision, 3.3)), 1):
        items = [{"id": name(number), "answered": outcome}]
        run.note("endpoint-0", number + at, "check", "ok", request=f"chk_{number}", items=items)
        run.tables["attempts"].append(
            {
                "half_id": half(number),
                "look_id": 10 * number + attempt,
                "round": 1,
                "attempt": attempt,
                "asked_at": UNIX + number + at,
                "outcome": outcome.lower(),
                "counted": True,
                "applied": outcome != "UNKNOWN",
            }
        )
    _decide(run, number, decision, DecidedBy.CHECK, number + 3.4)


def _refuse(run: RunFolder) -> None:
    item = {"tx": "client-0-1-0-refused", "topic": TOPIC, "key": None, "sha": "sha"}
    asked = [{**item, "size": 5, "headers": NO_HEADERS}]
    run.note("client-0", 16.0, "prepare", "invoke", group="chaos-batch", items=asked, about=None)
    run.note("client-0", 16.1, "prepare", "fail", status=422, slug="invalid", about=None)


def _list_commits(run: RunFolder) -> None:
    """Messages 1 and 2 belong to one transaction."""
    run.tables["ops"][2]["xid"] = run.tables["ops"][1]["xid"]
    of_xid: dict[int, list[int]] = {}
    for op in run.tables["ops"]:
        if op["decision"] == DECISION_CODE[Resolution.COMMIT]:
            of_xid.setdefault(op["xid"], []).append(op["half_id"])
    run.tables["commit_log"] = [
        {"shard": SHARD, "xid": xid, "half_ids": ids, "content_digests": [0] * len(ids)}
        for xid, ids in of_xid.items()
    ]


def _publish(run: RunFolder) -> None:
    offset = 0
    run.watermarks["outbox.progress/1"] = {"start": 0, "stable": 0, "end": 0}
    run.tables["progress"] = [{"name": "relay:1", "batch_no": len(BATCHES), "gen": 1}]
    after = Position(0, 0)
    for number, batch in enumerate(BATCHES, 1):
        for index, message in enumerate(batch):
            _publish_one(run, message, offset, f"1.{number}.{index}")
            offset += 1
        offset += 1
        to = Position(2_000 + batch[-1], 1) if batch[-1] != 2 else Position(2_001, 2)
        run.tables["manifests"].append(manifest_row(batch, after, to))
        after = to
    run.tables["progress"][0].update(position=after.xid, position_n=after.n, halt_reason=None)
    run.watermarks[f"{TOPIC}/0"] = {"start": 0, "stable": offset, "end": offset}
    resealed(run)


def manifest_row(batch: tuple[int, ...], after: Position, to: Position) -> Row:
    """Return a manifest that lists each message as published."""
    return {
        "shard": SHARD,
        "named_shard": SHARD,
        "gen": 1,
        "kind": "BATCH",
        "after": list(after),
        "to": list(to),
        "entries": [[name(message), "P"] for message in batch],
    }


def _publish_one(run: RunFolder, number: int, offset: int, batch: str) -> None:
    half_row = run.row("halves", number)
    place = {"topic": TOPIC, "partition": 0, "offset": offset, "id": name(number)}
    copied = {each: half_row[each] for each in ("tx", "producer_group", "key", "sha")}
    run.tables["uncommitted"].append(place)
    run.tables["records"].append(
        {
            **place,
            **copied,
            "decided_by": "producer",
            "batch": batch,
            "headers": NO_HEADERS,
            "content_digest": half_row["content_digest"],
        }
    )


def _read(run: RunFolder) -> None:
    for reader, table in (("committed", "records"), ("uncommitted", "uncommitted")):
        places = [[TOPIC, 0]]
        run.note(f"reader-{reader}", 0.0, "assigned", "ok", reader=reader, places=places)
        recs = [[row["partition"], row["offset"], row["id"]] for row in run.tables[table]]
        for some in (recs[:3], recs[3:]):
            run.note(f"reader-{reader}", 20.0, "read", "ok", reader=reader, topic=TOPIC, recs=some)


def _break_something(run: RunFolder) -> None:
    about = {"kind": "kill", "target": "checker-0"}
    run.note("harness", 10.0, "fault", "invoke", **about, args={})
    run.note("harness", 10.1, "fault", "ok", **about, facts={"pid": 1})
    run.note("harness", 10.2, "fault", "ok", kind="kill", target="checker-0", pid=1)
    run.note("harness", 10.6, "back", "ok", **about, seconds=0.5)


def _crc(manifest: Row) -> int:
    after, to = Position(*manifest["after"]), Position(*manifest["to"])
    entries = [Entry(UUID(each).bytes, status.encode()) for each, status in manifest["entries"]]
    return crc_of(
        encode(
            Manifest(
                installation=UUID(int=0),
                shard=SHARD,
                gen=manifest["gen"],
                kind=Kind[manifest["kind"]],
                batch_no=manifest["batch_no"],
                prev_crc=manifest["prev_crc"],
                after=after,
                to=to,
                entries=tuple(entries),
            )
        )
    )
