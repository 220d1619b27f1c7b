"""Tests that can run only on a young installation, and why; the mark ``young_only`` does the same.

They make a whole table, a whole log or a whole chain of runs their own. A test leaves this list
when it asks about its own rows alone.
"""

from __future__ import annotations

WHOLE = "compares a whole table with its own rows"
CHAIN = "compares the whole chain of runs"

UNPROVEN = "nothing shows that the record did not expire: the log begins above 0"
HELD = "an aged record is refused, so the log is read again, and the duplicate is found there"
LAST_HOUR = "counts everything of the last hour, in which the database was aged"
NONE = "starts brokers of its own, without any installation"
DEMO = "runs the shipped demo, which makes its installation"

YOUNG_ONLY: dict[str, dict[str, str]] = {
    "tests/chaos/test_smoke.py": {
        "": "runs the shipped command, which makes its installation; test_states.py plays on both"
    },
    "tests/e2e/demo/test_demo.py": {"": DEMO},
    "tests/e2e/command/test_outbox_dev.py": {
        "test_the_demonstration_succeeds_with_keys_and_without_a_network": DEMO,
        "test_the_demonstration_succeeds_on_the_oldest_supported_postgres": DEMO,
    },
    "tests/e2e/pages/test_systemd_page.py": {
        "": "types a page that installs the service on a new machine"
    },
    "tests/e2e/upgrade/test_rolling_upgrade.py": {
        "": "begins with the schema of the release before, which an aged database has left"
    },
    "tests/integration/transaction_markers/test_skipped_markers.py": {"": NONE},
    "tests/integration/checker/relay/settlement/test_unseen_batches.py": {
        "test_what_never_arrived_beside_a_committed_manifest_is_published_again": UNPROVEN,
    },
    "tests/integration/postgres/operators/test_shard_admin.py": {
        "test_accepted_duplicates_are_published_again_and_the_shard_continues": HELD,
    },
    "tests/integration/api/admin/reconciliations/test_reconciliations.py": {
        "test_runs_are_listed_newest_first_page_by_page": CHAIN,
        "test_the_run_gauges_are_read_from_the_tables": CHAIN,
        "test_a_key_that_is_bound_to_groups_sees_no_run": CHAIN,
    },
    "tests/integration/postgres/relay/test_commit_reader.py": {
        "test_a_batch_is_read_with_two_statements": "where records were held, a third reads them",
    },
    "tests/integration/postgres/operators/test_rates.py": {
        "test_a_quiet_hour_is_counted_exactly": LAST_HOUR,
        "test_a_large_flush_is_counted_whole": LAST_HOUR,
        "test_a_long_hour_is_estimated_from_a_bounded_sample": LAST_HOUR,
        "test_checks_are_counted_by_outcome_in_the_last_minutes_and_in_the_last_day": LAST_HOUR,
        "test_the_outcomes_of_a_long_day_are_estimated_from_a_bounded_sample": LAST_HOUR,
    },
    "tests/integration/api/console/pages/test_overview.py": {
        "test_the_overview_shows_messages_and_the_oldest_of_each_group": WHOLE,
        "test_the_overview_names_breakers_latency_and_outcomes_of_checks": LAST_HOUR,
        "test_a_calm_overview_says_so_and_a_key_without_scopes_reads_which_it_lacks": CHAIN,
    },
    "tests/integration/postgres/operators/test_history_reads.py": {
        "": "writes a history of its own, from xid 1 to the present"
    },
    "tests/integration/postgres/reconciliation/test_findings.py": {
        "test_an_acceptance_that_stores_nothing_leaves_no_event": CHAIN,
        "test_what_reruns_have_closed_is_counted_once_by_the_next_run_that_is_stored": CHAIN,
    },
    "tests/integration/postgres/reconciliation/test_run_store.py": {
        "test_past_runs_come_oldest_first_with_their_open_findings_and_without_the_run_itself": (
            CHAIN
        ),
        "test_all_new_and_resolved_findings_are_counted_by_kind_and_never_decrease": CHAIN,
        "test_saving_a_run_again_changes_nothing": CHAIN,
    },
    "tests/integration/spark/test_textfile.py": {
        "test_the_file_shows_the_newest_run_with_the_names_of_the_catalogue": CHAIN,
    },
    "tests/integration/postgres/reconciliation/test_source.py": {
        "test_the_snapshot_shows_each_decision": WHOLE,
        "test_topics_are_those_that_were_ever_prepared_for": WHOLE,
        "test_the_role_may_run_an_audit_and_nothing_else": WHOLE,
    },
    "tests/integration/postgres/reconciliation/test_stalled.py": {
        "test_a_parked_half_is_counted_and_not_stalled": WHOLE,
        "test_a_group_is_silent_two_intervals_after_a_half_was_due": (
            "begins without a heartbeat of any checker"
        ),
    },
}
"""By file and by the test's name without its parameters; an empty name means the whole file."""


def reason_for(nodeid: str) -> str | None:
    """Return why a test can run only on a young installation; None if it can run on both."""
    path, _, name = nodeid.partition("::")
    tests = YOUNG_ONLY.get(path, {})
    return tests.get(name.partition("[")[0]) or tests.get("")
