"""Mutants of what operators order and hear."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

API: Final = "tests/integration/api"

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
        promise="A bulk action is stored only on the server that has named its messages",
        file="outbox/postgres/operators/bulk_actions.py",
        rule="if order.server_started_at not in (None, server[0]):",
        broken="if server[0] is None:",
        killer=(
            f"{API}/admin/messages/test_bulk_reach.py"
            "::test_messages_that_another_server_has_named_are_left_alone"
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
