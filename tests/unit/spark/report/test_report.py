"""The sentence of the verdict, what a run closes, and what the database keeps of it."""

from __future__ import annotations

import pytest

from outbox.reconciliation.log import WHOLE_TOPIC, Partition
from spark.cut.cut_plan import Gap
from spark.findings.finding_class import Cause, Place
from spark.report.store_run import stored_run
from tests.fixtures_replacing import replace
from tests.unit.spark.fixtures_reports import make_finding, make_report


def test_the_sentence_counts_what_was_checked_and_what_was_found() -> None:
    report = make_report(
        [
            make_finding(1),
            make_finding(2, cause=Cause.UNPUBLISHED_HELD),
            make_finding(3, cause=Cause.DUPLICATE_REPEATED),
        ]
    )
    assert report.sentence == (
        "1 204 113 committed messages checked up to 12:00:03Z: 2 missing (1 lost), "
        "1 duplicate, 0 unexpected, 0 mismatch, 0 disordered; 2 of 2 partitions, 16 of 16 shards"
    )


def test_the_sentence_names_the_places_of_most_unverifiable_messages() -> None:
    places = {Partition("points", n): 10 - n for n in range(3)} | {Partition("", WHOLE_TOPIC): 1200}
    counts = replace(make_report().counts, unverifiable=1227)
    assert make_report(unverifiable=places, counts=counts).sentence.endswith(
        "; 1 227 messages unverifiable (a topic that is not known any more 1 200, points/0 10,"
        " points/1 9, …)"
    )


@pytest.mark.parametrize(
    ("found", "ending"),
    [
        ([Cause.MANIFEST_BREAK_CHAIN], "; 1 coverage findings"),
        ([Cause.UNPUBLISHED_GIVEN_UP, Cause.UNVERIFIABLE_COMPACTED], "16 of 16 shards"),
    ],
)
def test_the_sentence_names_every_kind_of_finding_that_decides_the_verdict(
    found: list[Cause], ending: str
) -> None:
    findings = [make_finding(n, cause=each) for n, each in enumerate(found)]
    assert make_report(findings).sentence.endswith(ending)


def test_what_was_not_read_is_not_counted_as_read() -> None:
    report = make_report(
        gaps=[
            Gap(cause="UNVERIFIABLE/not_read", partition=Partition("points", 1), reason="offline"),
            Gap(
                cause="UNVERIFIABLE/not_read",
                partition=Partition("outbox.progress", 4),
                reason="ACL",
            ),
        ]
    )
    assert (report.partitions_read, report.shards_read) == ((1, 2), (15, 16))


def test_a_partial_run_resolves_nothing() -> None:
    gap = Gap(cause="UNVERIFIABLE/not_read", partition=Partition("points", 1), reason="offline")
    assert not make_report(gaps=[gap]).resolves
    assert make_report([make_finding()]).resolves


def test_a_run_that_could_not_keep_every_finding_resolves_nothing() -> None:
    report = make_report(
        [make_finding()], cause_counts={(make_finding().graded, Place("points")): 2}
    )
    assert not report.resolves


def test_a_stored_finding_keeps_its_evidence_and_no_key() -> None:
    finding = make_finding(key=b"member-1", key_hash=-1, evidence={"copies": 0})
    (stored,) = stored_run(make_report([finding]), {}).findings
    assert stored.finding_id == finding.finding_id
    assert stored.evidence["key_hash"] == "f" * 16
    assert "member-1" not in repr(stored)


def test_the_finding_id_survives_a_refined_cause() -> None:
    lost = make_finding(cause=Cause.LOST_PUBLISHED)
    assert lost.finding_id == make_finding(cause=Cause.UNPUBLISHED_HELD).finding_id
    assert lost.finding_id != make_finding(cause=Cause.DUPLICATE_REPEATED).finding_id
    assert lost.finding_id != make_finding(subject="message:other").finding_id
