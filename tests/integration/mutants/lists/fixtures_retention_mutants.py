"""Mutants of retention, of the default leaf and of evacuation."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

RETENTION: Final = "tests/integration/checker/maintenance/test_retention.py"
EVACUATION: Final = "tests/integration/checker/maintenance/test_evacuation.py"
DEFAULT_LEAF: Final = "tests/integration/checker/maintenance/test_default_leaf.py"
INTERRUPTED_COPY: Final = "tests/integration/checker/maintenance/test_interrupted_copy.py"
COPY: Final = "migrations/versions/0030_default_leaf.sql"

RETENTION_MUTANTS: Final = (
    ProductMutant(
        promise="A clock that jumps ahead removes no leaf",
        file="outbox/postgres/maintenance/retention.sql",
        rule="%(retention)s + skipped_seconds) AS young_from",
        broken="%(retention)s) AS young_from",
        killer=(
            f"{RETENTION}::test_a_clock_that_jumps_ahead_removes_no_leaf_and_frees_no_transaction_id"
        ),
    ),
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
        rule="AND outbox.is_since(published_at, %(young_from)s, %(stepped)s)) THEN",
        broken="AND false) THEN",
        killer=(
            f"{RETENTION}::test_a_leaf_stays_for_the_retention_after_its_last_record_was_published"
        ),
    ),
    ProductMutant(
        promise="What was decided lately stays, however old it is",
        file="outbox/postgres/maintenance/retention.sql",
        rule="coalesce(bool_or(outbox.is_since(o.decided_at",
        broken="coalesce(bool_or(false AND outbox.is_since(o.decided_at",
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
