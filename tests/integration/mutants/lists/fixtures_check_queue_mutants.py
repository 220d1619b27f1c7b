"""Mutants of the check queue and of producer groups."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

QUEUE: Final = "tests/integration/postgres/checks/test_check_queue.py"
CLOCKS: Final = "tests/integration/postgres/checks/test_clock_steps.py"
CHECKS: Final = "tests/integration/checker/checks"
API: Final = "tests/integration/api"

CHECK_MUTANTS: Final = (
    ProductMutant(
        promise="The sweep does not pass a half of an open transaction",
        file="outbox/postgres/checks/sweep.sql",
        rule="SELECT position, outbox.watermark() << 15 AS bound,",
        broken="SELECT position, 9223372036854775807 AS bound,",
        killer=f"{QUEUE}::test_the_sweep_does_not_pass_a_half_of_an_open_transaction",
    ),
    ProductMutant(
        promise="A half is queued by one sweep alone",
        file="outbox/postgres/checks/sweep.sql",
        rule="WHERE name = 'sweep' AND position = %(position)s",
        broken="WHERE name = 'sweep'",
        killer=f"{QUEUE}::test_two_sweeps_that_have_read_the_same_slice_queue_each_half_once",
    ),
    ProductMutant(
        promise="Only one of two rounds over the same rows is written",
        file="outbox/postgres/checks/settlement.sql",
        rule=" AND c.position = moved.position",
        broken="",
        killer=f"{QUEUE}::test_only_one_of_two_rounds_over_the_same_rows_is_written",
    ),
    ProductMutant(
        promise="A row of an open transaction holds back the rows after it",
        file="outbox/postgres/checks/check_queue.sql",
        rule="            AND id > c.position AND id < (SELECT outbox.watermark() << 15)\n",
        broken="            AND id > c.position\n",
        killer=f"{QUEUE}::test_a_row_of_an_open_transaction_holds_back_the_rows_after_it",
    ),
    ProductMutant(
        promise="An end during the last round leaves no parked message",
        file="outbox/postgres/checks/settlement.sql",
        rule="WHERE o.decided IS NULL AND coalesce(r.round, 1) = aside.round",
        broken="WHERE coalesce(r.round, 1) = aside.round",
        killer=f"{CHECKS}/test_rechecks.py::test_d8_an_end_during_the_last_round_leaves_no_parked_message",
    ),
    ProductMutant(
        promise="A half that was rechecked during its last round is not parked",
        file="outbox/postgres/checks/settlement.sql",
        rule="WHERE o.decided IS NULL AND coalesce(r.round, 1) = aside.round",
        broken="WHERE o.decided IS NULL",
        killer=(
            f"{CHECKS}/test_rechecks.py::test_a_half_rechecked_during_its_last_round_is_not_parked"
        ),
    ),
    ProductMutant(
        promise="A half that is parked while it is asked about is not asked again",
        file="outbox/postgres/checks/settlement.sql",
        rule=(
            "WHERE NOT EXISTS (\n    SELECT FROM outbox.parked_message p"
            " WHERE p.half_id = back.half_id AND p.resumed_at IS NULL)"
        ),
        broken="",
        killer=(
            f"{CHECKS}/test_resting_groups.py"
            "::test_a_half_that_is_parked_while_it_is_asked_about_is_not_put_back"
        ),
    ),
    ProductMutant(
        promise="A breaker that one checker has opened keeps every checker waiting",
        file="outbox/postgres/checks/check_queue.sql",
        rule="LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id\nCROSS JOIN",
        broken="LEFT JOIN outbox.check_breaker b ON false\nCROSS JOIN",
        killer=(
            f"{CHECKS}/test_group_breakers.py::test_every_checker_waits_after_one_has_opened_it"
        ),
    ),
    ProductMutant(
        promise="A clock that jumps ahead parks no half before it is asked about",
        file="outbox/checks/policy.py",
        rule="return now - since - doubt.skipped",
        broken="return now - since",
        killer=(
            f"{CLOCKS}::test_a_clock_that_jumps_ahead_parks_no_half_before_it_is_asked_about[True]"
        ),
    ),
    ProductMutant(
        promise="A half of a time ahead is parked at its age since the clock's step back",
        file="outbox/checks/policy.py",
        rule="        since = doubt.stepped_at",
        broken="        pass",
        killer=(
            f"{CLOCKS}::test_a_half_from_a_time_that_was_far_ahead_is_parked_at_its_age_"
            "since_the_step_back"
        ),
    ),
    ProductMutant(
        promise="The sweep does not wait for the time of a half from before the clock was set back",
        file="outbox/postgres/checks/sweep.sql",
        rule=" AND prepared_at <= %(now)s AS young",
        broken=" AND %(now)s IS NOT NULL AS young",
        killer=(
            "tests/integration/postgres/checks/test_clock_steps.py"
            "::test_the_sweep_does_not_wait_for_the_time_of_a_half_from_before_the_step"
        ),
    ),
    ProductMutant(
        promise="A tenant cannot make a delay class per message",
        file="outbox/postgres/checks/sweep.py",
        rule="total_seconds(), half.groups_immunity_seconds)",
        broken="total_seconds(), half.immunity_seconds)",
        killer=f"{QUEUE}::test_immunities_that_a_producer_chooses_make_few_delay_classes",
    ),
    ProductMutant(
        promise="A half at its max age is parked though its group's secret cannot be read",
        file="outbox/postgres/checks/check_queue.py",
        rule="            if not due.aged:\n                raise\n",
        broken="            raise\n",
        killer=(
            f"{CHECKS}/test_unreadable_secrets.py"
            "::test_a_half_at_its_max_age_is_parked_though_the_secret_cannot_be_read"
        ),
    ),
    ProductMutant(
        promise="A group with unfinished messages is not deleted",
        file="outbox/postgres/checks/producer_groups.sql",
        rule="WHERE half_id = h.half_id) IS NULL\n",
        broken="WHERE half_id = h.half_id) < 0\n",
        killer=(
            f"{API}/admin/test_producer_groups.py"
            "::test_a_group_is_deleted_only_without_unfinished_messages"
        ),
    ),
    ProductMutant(
        promise="The old secret signs until its overlap ends",
        file="outbox/postgres/checks/producer_groups.sql",
        rule="SET previous_secret = secret, secret = %(secret)s,",
        broken="SET previous_secret = %(secret)s, secret = %(secret)s,",
        killer=(
            f"{API}/admin/test_producer_groups.py::test_a_rotated_secret_signs_beside_the_old_one"
        ),
    ),
    ProductMutant(
        promise="Every replaced secret signs until its own overlap ends",
        file="outbox/postgres/checks/producer_groups.sql",
        rule="WHERE %(overlap)s > 0 AND expires_at > clock_timestamp()",
        broken="WHERE false",
        killer=(
            f"{API}/admin/test_producer_groups.py"
            "::test_every_replaced_secret_signs_until_its_own_overlap_ends"
        ),
    ),
    ProductMutant(
        promise="A round is written only on the server whose rows it has read",
        file="outbox/postgres/checks/settlement.py",
        rule="if await cursor.fetchone() != (True,):",
        broken="if await cursor.fetchone() is None:",
        killer=(
            "tests/integration/postgres/checks/test_check_queue.py"
            "::test_a_round_whose_rows_were_read_on_another_server_is_not_written"
        ),
    ),
)
