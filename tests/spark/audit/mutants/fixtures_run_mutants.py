"""Mutants of the rules between runs: where a run begins, what it carries, and who may run."""

from __future__ import annotations

from typing import Final

from outbox.messages.manifest import Position
from outbox.postgres.reconciliation import stored_checkpoint
from spark.checks import misplaced_keys
from spark.compare import expiry, facts, open_items
from spark.cut import checkpoint
from spark.cut.log_state import Baseline
from spark.findings import stored_finding
from spark.findings.finding_class import FindingClass
from tests.integration.postgres.reconciliation import test_run_lock, test_run_store
from tests.spark.audit.mutants.fixtures_mutant import Mutant, Needs
from tests.spark.checks import test_misplaced_keys
from tests.spark.cut import test_carry_over
from tests.unit.spark.compare import test_diagnosis, test_expiry, test_last_records
from tests.unit.spark.cut import test_checkpoint
from tests.unit.spark.fixtures_suspects import make_suspect
from tests.unit.spark.report import test_report

SOME: Final = {"count": 100, "most_cuts": 2}
"""Enough histories that each rule below matters in one of them."""
ANY_SPLIT: Final = (
    test_carry_over.test_any_split_of_a_history_into_runs_ends_with_what_counting_finds
)
BY_NAME: Final = test_carry_over.test_what_is_open_is_carried_by_name_or_not_at_all
"""The same rules at a tenth of the cost; random histories need all of them too."""
BEFORE: Final = test_checkpoint.make_previous()

WAS_MISPLACED: Final = {
    "known": {"points": checkpoint.MisplacedKeys(2, frozenset({7}))},
    "row": test_misplaced_keys.record(half_id=1),
}

MUTANTS: Final = (
    # What a run remembers of keys.
    Mutant(
        name="misplaced keys forgotten",
        module=misplaced_keys,
        rule='F.expr(IS_MISPLACED) | F.col("before") | of_many',
        broken="F.expr(IS_MISPLACED)",
        killer=test_misplaced_keys.test_a_key_that_may_be_in_two_partitions_makes_a_run_read_everything,
        needs=Needs.SPARK,
        given=WAS_MISPLACED,
    ),
    # What a run carries.
    Mutant(
        name="carry dropped",
        module=open_items,
        rule="    return (*(CarriedRow(*row) for row in found), *map(_finding_row, lasting))",
        broken="    return tuple(map(_finding_row, lasting))",
        killer=ANY_SPLIT,
        needs=Needs.SPARK,
        given=SOME,
    ),
    Mutant(
        name="ahead rows dropped",
        module=open_items,
        rule="        RECORD: frames.records,",
        broken='        RECORD: frames.records.where("NOT ahead"),',
        killer=BY_NAME,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="late rows meet no commit",
        module=open_items,
        rule='frames.commits.where(F.col("standing") != IN_FLIGHT)',
        broken="frames.commits.where(F.lit(False))",
        killer=BY_NAME,
        needs=Needs.SPARK,
    ),
    Mutant(
        name="what settled is forgotten",
        module=facts,
        rule="    return judgement.continued and suspect.standing is None and committed",
        broken="    return False",
        killer=test_diagnosis.test_of_a_message_matched_before_a_repair_explains_one_record_whichever_came_first,
        given={"redriven": (False,), "released": False, "expected": FindingClass.DUPLICATE_LATE},
    ),
    Mutant(
        name="an order explains each record of it",
        module=facts,
        rule="    repeated = min(len(batches), len(orders)) < len(redriven)\n",
        broken="    repeated = len(batches) < len(redriven)\n",
        killer=test_diagnosis.test_two_orders_explain_two_records_but_not_two_of_one_batch_or_of_one_order,
        given={"batches": (2, 3), "orders": ("a", "a"), "expected": FindingClass.DUPLICATE},
    ),
    Mutant(
        name="a repair is repeated unseen after a run has matched it",
        module=facts,
        rule="    return hold.release_batch_no not in (None, copy.batch_no)\n",
        broken="    return False\n",
        killer=test_diagnosis.test_of_a_message_matched_before_an_order_explains_the_record_in_the_batch_that_it_recorded,
        given={
            "recorded": 4,
            "batch_no": 5,
            "order": "last",
            "expected": FindingClass.DUPLICATE_LATE,
        },
    ),
    # What retention explains.
    Mutant(
        name="what was released after a topic was accepted was published before",
        module=facts,
        rule="place[0] > baseline.batch_no:",
        broken="False:",
        killer=test_last_records.test_nothing_published_by_the_cut_at_which_a_topic_was_accepted_is_missed,
        given={"baseline": Baseline(Position(9, 1), batch_no=0), "expected": None},
    ),
    Mutant(
        name="what was never published has expired",
        module=expiry,
        rule="if suspect.known is None or not is_published(suspect, unlisted=unlisted):",
        broken="if suspect.known is None:",
        killer=test_expiry.test_what_was_never_published_has_not_expired,
        given={
            "suspect": make_suspect(listed=()),
            "expected": FindingClass.SKIPPED,
        },
    ),
    Mutant(
        name="what was missing before has expired",
        module=expiry,
        rule="if suspect.half_id in earlier.missing and not since:",
        broken="if False:",
        killer=test_expiry.test_what_an_earlier_run_had_missed_has_not_expired_since_unless_published_again,
    ),
    Mutant(
        name="what was read before has expired unread",
        module=expiry,
        rule="(earlier.ends.get(partition, 0) if since else 0)",
        broken="0",
        killer=test_expiry.test_what_was_published_since_the_last_cut_expires_only_behind_it,
        given={"batch_no": 8, "start": 50, "place": None, "expected": ["LOST"]},
    ),
    # Where a run begins.
    Mutant(
        name="rows read twice",
        module=checkpoint,
        rule="start=max(each.start, ends.get(each.partition, each.start))",
        broken="start=each.start",
        killer=test_checkpoint.test_only_what_no_run_has_read_is_read_with_the_last_manifest_before_it,
        given={"previous": BEFORE},
    ),
    Mutant(
        name="another manifest in the place of the known one",
        module=checkpoint,
        rule="if found != mark.crc:",
        broken="if False:",
        killer=test_checkpoint.test_manifests_that_do_not_continue_the_known_one_are_read_again,
        given={
            "previous": BEFORE,
            "found": [],
            "reason": "the last known manifest of shard 3 is gone",
        },
    ),
    Mutant(
        name="a history with a new beginning is continued",
        module=checkpoint,
        rule='row["lowest"] is not None and Position(*row["lowest"]) < known',
        broken="False",
        killer=test_checkpoint.test_manifests_that_do_not_continue_the_known_one_are_read_again,
        given={
            "previous": BEFORE,
            "found": [test_checkpoint.row(lowest=(499, 9))],
            "reason": "has a new beginning",
        },
    ),
    Mutant(
        name="a PostgreSQL that went back is continued",
        module=checkpoint,
        rule="_horizon(snapshot.visible) < previous.horizon",
        broken="False",
        killer=test_checkpoint.test_a_store_that_lost_its_end_is_read_again,
        given={
            "previous": BEFORE,
            "now": test_checkpoint.log(),
            "visible": "760:769:",
            "reason": "has gone back",
        },
    ),
    Mutant(
        name="a shard that falls below its last cut",
        module=checkpoint,
        rule="max((new.batch_no, new.position), (known.batch_no, known.position))",
        broken="(new.batch_no, new.position)",
        killer=test_checkpoint.test_a_shard_keeps_its_baseline_and_never_falls_below_its_last_cut,
        given={"previous": BEFORE},
    ),
    # What earlier runs have found.
    Mutant(
        name="a finding of an earlier run counts as a new one",
        module=stored_finding,
        rule="stored_id=stored.finding_id,",
        broken="stored_id=None,",
        killer=test_report.test_a_finding_that_no_run_can_see_any_more_is_reported_as_it_was_stored,
    ),
    Mutant(
        name="a finding of an earlier run has another severity",
        module=stored_finding,
        rule="given_severity=Severity[stored.severity.upper()],",
        broken="given_severity=Severity.LOW,",
        killer=test_report.test_a_finding_that_no_run_can_see_any_more_is_reported_as_it_was_stored,
    ),
    # Who may run.
    Mutant(
        name="two runs at once",
        module=stored_checkpoint,
        rule="if row is None or not row[0]:",
        broken="if row is None:",
        killer=test_run_lock.test_while_one_run_has_the_lock_no_other_run_begins,
        needs=Needs.STORES,
    ),
    Mutant(
        name="a run that was overtaken is stored",
        module=stored_checkpoint,
        rule='if not connection.execute(SQL["update_cut"], asked).rowcount:',
        broken="if False:",
        killer=test_run_store.test_of_two_runs_that_began_at_one_cut_the_second_to_end_stores_nothing,
        needs=Needs.STORES,
    ),
)
