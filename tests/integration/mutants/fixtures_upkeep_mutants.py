"""Mutants of the check queue, of retention and of what operators order and hear."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

QUEUE: Final = "tests/integration/postgres/checks/test_check_queue.py"
CHECKS: Final = "tests/integration/checker/checks"
RETENTION: Final = "tests/integration/checker/maintenance/test_retention.py"
EVACUATION: Final = "tests/integration/checker/maintenance/test_evacuation.py"
DEFAULT_LEAF: Final = "tests/integration/checker/maintenance/test_default_leaf.py"
INTERRUPTED_COPY: Final = "tests/integration/checker/maintenance/test_interrupted_copy.py"
COPY: Final = "migrations/versions/0030_default_leaf.sql"
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
        rule="LEFT JOIN outbox.check_breaker b ON b.producer_group_id = id\nWHERE id = %(group)s",
        broken="LEFT JOIN outbox.check_breaker b ON false\nWHERE id = %(group)s",
        killer=(
            f"{CHECKS}/test_group_breakers.py::test_every_checker_waits_after_one_has_opened_it"
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
)

RETENTION_MUTANTS: Final = (
    ProductMutant(
        promise="A leaf stays while the relay is in the middle of one of its commit rows",
        file="outbox/postgres/maintenance/retention.sql",
        rule="coalesce(p.position_n, 0))) THEN 'relay'",
        broken="2147483647)) THEN 'relay'",
        killer=(
            f"{RETENTION}"
            "::test_a_leaf_stays_while_the_relay_is_in_the_middle_of_one_of_its_commit_rows"
        ),
    ),
    ProductMutant(
        promise="A leaf stays for the retention after its last record was published",
        file="outbox/postgres/maintenance/retention.sql",
        rule="AND published_at > clock_timestamp() - make_interval(secs => %(retention)s)) THEN",
        broken="AND false) THEN",
        killer=(
            f"{RETENTION}::test_a_leaf_stays_for_the_retention_after_its_last_record_was_published"
        ),
    ),
    ProductMutant(
        promise="What was decided lately stays, however old it is",
        file="outbox/postgres/maintenance/retention.sql",
        rule="coalesce(bool_or(o.decided_at >",
        broken="coalesce(bool_or(false AND o.decided_at >",
        killer=(
            f"{RETENTION}::test_what_was_decided_lately_stays_however_long_ago_it_was_prepared"
        ),
    ),
    ProductMutant(
        promise="More held messages than one removal moves keep their leaf",
        file="outbox/postgres/maintenance/retention.sql",
        rule="LIMIT %(most)s + 1) held) > %(most)s THEN 'held'",
        broken="LIMIT %(most)s + 1) held) > 1000000 THEN 'held'",
        killer=(f"{RETENTION}::test_more_held_messages_than_one_removal_moves_keep_their_leaf"),
    ),
    ProductMutant(
        promise="A leaf waits for the last reconciliation",
        file="outbox/postgres/maintenance/retention.sql",
        rule="WHERE (c.xid, c.n) > (p.position, p.position_n)",
        broken="WHERE false",
        killer=(
            f"{RETENTION}::test_a_leaf_waits_for_the_last_reconciliation_no_longer_than_the_hold"
        ),
    ),
    ProductMutant(
        promise="A leaf stays until the sweep has passed it",
        file="outbox/postgres/maintenance/retention.sql",
        rule="AND half_id > coalesce((SELECT position",
        broken="AND false AND half_id > coalesce((SELECT position",
        killer=f"{RETENTION}::test_a_leaf_stays_until_the_sweep_has_passed_it",
    ),
    ProductMutant(
        promise="A leaf that new transactions still write to stays",
        file="outbox/postgres/maintenance/retention.sql",
        rule="WHEN outbox.watermark() < %(to_xid)s THEN 'in use'",
        broken="WHEN false THEN 'in use'",
        killer=f"{RETENTION}::test_a_leaf_that_new_transactions_still_write_to_stays",
    ),
    ProductMutant(
        promise="A transaction id is free again once its message is retired",
        file="outbox/postgres/maintenance/retention.sql",
        rule="    AND k.half_id <> ALL (%(kept)s::int8[])",
        broken="    AND k.half_id = ANY (%(kept)s::int8[])",
        killer=f"{RETENTION}::test_a_transaction_id_is_free_again_once_its_message_is_retired",
    ),
    ProductMutant(
        promise="A given-up message outlives its leaf",
        file="outbox/postgres/maintenance/retention.py",
        rule='kept = [*undecided, *late, *await _fetch(connection, "unreleased", bounds)]',
        broken="kept = [*undecided, *late]",
        killer=f"{EVACUATION}::test_a_given_up_message_outlives_its_leaf",
    ),
    ProductMutant(
        promise="A message that is admitted while its leaf is removed is published",
        file="outbox/postgres/maintenance/retention.py",
        rule='late = await _fetch(connection, "committed_since", bounds | {"since": since})',
        broken="late: list[int] = []",
        killer=(
            "tests/integration/checker/maintenance/test_late_admission.py"
            "::test_a_message_that_is_admitted_while_its_leaf_is_removed_is_published"
        ),
    ),
    ProductMutant(
        promise="No role makes a trigger of a function that runs as the owner",
        file="migrations/grants.sql",
        rule="pronamespace = 'outbox'::regnamespace AND prosecdef LOOP",
        broken="proname = 'publish' LOOP",
        killer=(
            "tests/integration/postgres/schema/test_roles.py"
            "::test_a_role_runs_nothing_as_the_owner_by_a_trigger_of_its_own[outbox_publish]"
        ),
    ),
    ProductMutant(
        promise="Rows without a leaf are not moved under a lock that keeps prepares waiting",
        file=COPY,
        rule="CONSTRAINT ck_leaf CHECK (%I >= %s AND %I < %s)",
        broken="CONSTRAINT ck_leaf CHECK (%I >= %s OR %I < %s)",
        killer=(
            f"{DEFAULT_LEAF}"
            f"::test_no_row_is_read_or_moved_under_a_lock_that_keeps_others_waiting[1200]"
        ),
    ),
    ProductMutant(
        promise="A step that waits for a vacuum of a default leaf keeps no prepare waiting",
        file=COPY,
        rule="IN SHARE UPDATE EXCLUSIVE MODE\n$$;",
        broken="IN ACCESS SHARE MODE\n$$;",
        killer=(
            f"{DEFAULT_LEAF}::test_nobody_waits_for_a_step_that_waits_for_a_vacuum"
            "[replace-op_message_default]"
        ),
    ),
    ProductMutant(
        promise="What is decided while rows are copied is in the copy",
        file=COPY,
        rule="THEN INSERT INTO outbox.op_message_next SELECT NEW.*;",
        broken="THEN NULL;",
        killer=f"{DEFAULT_LEAF}::test_prepares_and_ends_do_not_wait_while_rows_are_copied",
    ),
    ProductMutant(
        promise="A copy whose rows are not those of the default leaf does not replace it",
        file=COPY,
        rule="    IF equal THEN\n",
        broken="    IF true THEN\n",
        killer=f"{INTERRUPTED_COPY}::test_a_copy_that_somebody_has_changed_is_begun_again",
    ),
    ProductMutant(
        promise="A copy that nobody went on with is begun again, not read under a lock",
        file=COPY,
        rule="                WHEN NOT outbox.is_staged(outbox.leaf_to_come() - 1) THEN 'end'\n",
        broken="",
        killer=(
            f"{INTERRUPTED_COPY}"
            "::test_a_copy_that_nobody_went_on_with_for_many_leaves_is_begun_again[copy]"
        ),
    ),
    ProductMutant(
        promise="No deletion waits while the rows of a copy are counted",
        file=COPY,
        rule="IN SHARE ROW EXCLUSIVE MODE;\n    step :=",
        broken="IN EXCLUSIVE MODE;\n    step :=",
        killer=f"{DEFAULT_LEAF}::test_nobody_waits_while_rows_are_compared",
    ),
    ProductMutant(
        promise="A migration in the middle of a copy stops neither prepares nor ends",
        file="migrations/env.py",
        rule="            on_version_apply=_end_move,\n",
        broken="",
        killer=f"{INTERRUPTED_COPY}::test_a_migration_ends_a_copy_that_would_not_have_its_columns",
    ),
    ProductMutant(
        promise="A row that is deleted while it is copied does not come back",
        file=COPY,
        rule="        LOCK TABLE outbox.leaf_move IN ROW SHARE MODE;\n",
        broken="",
        killer=(f"{DEFAULT_LEAF}::test_what_is_deleted_while_it_is_copied_does_not_come_back"),
    ),
    ProductMutant(
        promise="A default leaf is not replaced under an audit that may still read it",
        file=COPY,
        rule="    IF NOT outbox.no_audit() THEN\n        RAISE",
        broken="    IF false THEN\n        RAISE",
        killer=f"{DEFAULT_LEAF}::test_many_rows_keep_their_place_while_an_audit_may_read_them",
    ),
    ProductMutant(
        promise="A leaf is not retired under an audit that may still read it",
        file="outbox/postgres/maintenance/retention.py",
        rule='if await _fetch(connection, "no_audit", {}) != [True]:',
        broken="if False:",
        killer=f"{EVACUATION}::test_a_leaf_is_not_retired_under_an_audit_that_may_still_read_it",
    ),
    ProductMutant(
        promise="An evacuated message stays as long as the leaf of its decision",
        file="outbox/postgres/maintenance/retention.sql",
        rule="        AND decided.xid >> 20 IN (SELECT leaf FROM outbox.retired_leaf)\n",
        broken="",
        killer=f"{EVACUATION}::test_an_evacuated_message_goes_with_the_leaf_of_its_decision",
    ),
)

OPERATOR_MUTANTS: Final = (
    ProductMutant(
        promise="A revoked key stops working",
        file="outbox/postgres/operators/api_keys.sql",
        rule="WHERE key_id = ANY (%(key_ids)s::text[]) AND revoked_at IS NULL\n",
        broken="WHERE key_id = ANY (%(key_ids)s::text[])\n",
        killer=(
            f"{API}/http/authentication/test_keys_and_scopes.py"
            "::test_a_key_is_shown_once_and_stops_working_when_it_is_revoked"
        ),
    ),
    ProductMutant(
        promise="A dropped record is listed as dropped and frees its scope",
        file="outbox/postgres/operators/held_admin.sql",
        rule="SET dropped_at = clock_timestamp(), drop_reason = %(reason)s",
        broken="SET drop_reason = %(reason)s",
        killer=(
            f"{API}/admin/messages/test_bulk_actions.py::test_held_records_are_released_or_dropped_by_filter"
        ),
    ),
    ProductMutant(
        promise="A resumed message starts its checks and its age again",
        file="outbox/postgres/operators/operations.sql",
        rule="SELECT half_id, 2, CASE WHEN EXISTS (SELECT FROM resumed)",
        broken="SELECT half_id, 2, CASE WHEN false",
        killer=(
            f"{API}/admin/messages/test_operations.py"
            "::test_a17_a_parked_message_returns_once_and_the_second_recheck_only_makes_it_due"
        ),
    ),
    ProductMutant(
        promise="A lost message is not published after a newer one of its key",
        file="outbox/postgres/operators/repairs.sql",
        rule="    WHERE a.ordered AND NOT %(accept_order)s\n",
        broken="    WHERE false\n",
        killer=(
            f"{API}/admin/reconciliations/test_republish.py"
            "::test_a_plan_lists_the_messages_to_republish_and_the_refused_ones_with_reasons"
        ),
    ),
    ProductMutant(
        promise="A repair that no run has judged yet is not made again",
        file="outbox/postgres/operators/repairs.sql",
        rule="r.released_at IS NULL OR r.repair IS NOT NULL AND",
        broken="r.released_at IS NULL OR false AND",
        killer=(
            f"{API}/admin/reconciliations/test_republish.py"
            "::test_a_repair_that_no_run_has_judged_yet_is_not_made_again"
        ),
    ),
    ProductMutant(
        promise="A finding that closed after its order is not repaired",
        file="outbox/postgres/operators/repairs.sql",
        rule="WHERE f.half_id = h.half_id AND f.status = 'open' AND f.class",
        broken="WHERE f.half_id = h.half_id AND f.class",
        killer=(
            f"{API}/admin/reconciliations/test_republish.py"
            "::test_a_finding_that_closed_after_its_order_is_not_repaired"
        ),
    ),
    ProductMutant(
        promise="A notice of a reconciliation is kept until it is delivered",
        file="spark/report/store_run.py",
        rule='**({} if notice is None else {"notice": notice}),',
        broken='"notices": notice,',
        killer=(
            "tests/integration/spark/test_notices.py"
            "::test_notices_that_an_endpoint_has_refused_are_sent_later_in_the_order_of_their_runs"
        ),
    ),
)

UPKEEP_MUTANTS: Final = (*CHECK_MUTANTS, *RETENTION_MUTANTS, *OPERATOR_MUTANTS)
