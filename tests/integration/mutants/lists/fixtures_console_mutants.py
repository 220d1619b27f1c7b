"""Mutants of the console: its sessions, its forms and its pages; and of waiting bulk actions."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

CONSOLE: Final = "tests/integration/api/console"
UNIT: Final = "tests/unit/api/console"

CONSOLE_MUTANTS: Final = (
    ProductMutant(
        promise="No page is sought for each part of a deep address that a browser names",
        file="api/console/form_page.py",
        rule='"/".join(named.path.removeprefix(prefix).split("/", _PARTS)[:_PARTS])',
        broken="named.path.removeprefix(prefix)",
        killer=f"{CONSOLE}/test_attacks.py"
        "::test_the_page_of_a_form_is_found_at_once_however_deep_it_claims_to_be",
    ),
    ProductMutant(
        promise="A form has the token of its session",
        file="api/console/console.py",
        rule="not hmac.compare_digest(given.encode(), session.csrf.encode())",
        broken="False",
        killer=f"{CONSOLE}/test_login.py"
        "::test_a_form_without_the_token_of_its_session_does_nothing",
    ),
    ProductMutant(
        promise="A form that a browser marks as another site's does nothing",
        file="api/console/console.py",
        rule="if foreign or session is None or",
        broken="if session is None or",
        killer=f"{CONSOLE}/test_login.py"
        "::test_a_form_without_the_token_of_its_session_does_nothing",
    ),
    ProductMutant(
        promise="A stranger sees no page of the console",
        file="api/console/console.py",
        rule="if not visitor.is_known and path != LOGIN:",
        broken="if False:",
        killer=f"{CONSOLE}/test_login.py"
        "::test_a_stranger_is_sent_to_the_login_and_from_there_to_the_page",
    ),
    ProductMutant(
        promise="The key of a session is verified for each request",
        file="api/console/console.py",
        rule="return Visitor(NOBODY, session and replace(session, token=None))",
        broken="return Visitor(Caller(key_id=None, scopes=frozenset(), groups=None), session)",
        killer=f"{CONSOLE}/test_login.py::test_a_revoked_key_ends_its_sessions",
    ),
    ProductMutant(
        promise="Scripts cannot read the cookie of a session",
        file="api/console/console.py",
        rule="            httponly=True,\n",
        broken="            httponly=False,\n",
        killer=f"{CONSOLE}/test_login.py"
        "::test_the_cookie_is_closed_to_scripts_and_other_sites_and_does_not_show_the_key",
    ),
    ProductMutant(
        promise="The cookie of a session travels over https, but on loopback",
        file="api/console/console.py",
        rule="secure=not is_loopback(_host_name(visit.request)),",
        broken="secure=False,",
        killer=f"{CONSOLE}/test_login.py"
        "::test_the_cookie_is_closed_to_scripts_and_other_sites_and_does_not_show_the_key",
    ),
    ProductMutant(
        promise="A page that refreshes itself does not prolong a session",
        file="api/console/console.py",
        rule="if visit.is_refresh or visit.session is None:",
        broken="if visit.session is None:",
        killer=f"{CONSOLE}/pages/test_start_page.py"
        "::test_a_refresh_gets_the_list_alone_and_does_not_renew_the_session",
    ),
    ProductMutant(
        promise="A session has a longest life",
        file="api/console/session.py",
        rule="return session if fits and now - session.begun_at <= LONGEST_SECONDS else None",
        broken="return session if fits else None",
        killer=f"{UNIT}/test_session.py"
        "::test_a_session_that_nobody_uses_ends_and_a_used_one_has_an_end_too",
    ),
    ProductMutant(
        promise="A session that nobody uses ends",
        file="api/console/session.py",
        rule="<= idle <= IDLE_SECONDS",
        broken="<= idle <= LONGEST_SECONDS",
        killer=f"{UNIT}/test_session.py"
        "::test_a_session_that_nobody_uses_ends_and_a_used_one_has_an_end_too",
    ),
    ProductMutant(
        promise="Text from outside is text on a page",
        file="api/console/page_renderer.py",
        rule="autoescape=True,",
        broken="autoescape=False,",
        killer=f"{CONSOLE}/pages/test_start_page.py::test_hostile_text_is_shown_as_text",
    ),
    ProductMutant(
        promise="A page runs no script that was written into it",
        file="api/console/page_renderer.py",
        rule="\"default-src 'self'; base-uri",
        broken="\"default-src 'self' 'unsafe-inline'; base-uri",
        killer=f"{CONSOLE}/test_login.py::test_every_page_confines_the_browser",
    ),
    ProductMutant(
        promise="A login leads to no other host",
        file="api/console/pages/login.py",
        rule='return "/" if foreign else path',
        broken='return asked or "/"',
        killer=f"{CONSOLE}/test_login.py::test_the_login_goes_on_to_no_other_host",
    ),
    ProductMutant(
        promise="A form whose session is over trusts no referrer of another host",
        file="api/console/form_page.py",
        rule="named.netloc != host or ",
        broken="",
        killer=f"{CONSOLE}/test_login.py"
        "::test_a_form_whose_session_is_over_leads_through_the_login_back_to_its_page",
    ),
    ProductMutant(
        promise="A session that ends on the page of a dry run leads back to the dry run",
        file="api/console/form_page.py",
        rule="{'?' if query else ''}{query}",
        broken="",
        killer=f"{CONSOLE}/test_login.py"
        "::test_a_session_that_ends_on_the_page_of_a_dry_run_leads_back_to_the_dry_run",
    ),
    ProductMutant(
        promise="An export holds no formula",
        file="outbox/operators/csv_line.py",
        rule='return "\'" + text if text.startswith(NOT_IN_A_CELL) else text',
        broken="return text",
        killer=f"{CONSOLE}/pages/test_start_page.py"
        "::test_an_export_holds_exactly_what_matches_and_no_formula",
    ),
    ProductMutant(
        promise="A bound key sees no metric of another group in the console",
        file="api/console/metric_values.py",
        rule="return self._caller.groups is None or labels.get(GROUP) in self._caller.groups",
        broken="return True",
        killer=f"{CONSOLE}/pages/test_pages.py::test_a_bound_key_sees_no_number_of_another_group",
    ),
    ProductMutant(
        promise="An action of the console needs a search",
        file="api/console/pages/bulk_action.py",
        rule="if not search.filters and search.state is None:",
        broken="if False:",
        killer=f"{CONSOLE}/pages/test_bulk_actions.py::test_an_action_needs_a_search_and_the_scope",
    ),
    ProductMutant(
        promise="An action on selected messages does nothing without a selection",
        file="api/console/pages/bulk_action.py",
        rule='is_selection = given.get("of") == SELECTED',
        broken='is_selection = "message" in given',
        killer=f"{CONSOLE}/pages/test_exact_actions.py"
        "::test_an_action_takes_the_selected_messages_and_no_others",
    ),
    ProductMutant(
        promise="A key names no messages of another group in an action on many",
        file="outbox/postgres/operators/bulk_actions.py",
        rule="and (groups is None or status.producer_group_id in groups)",
        broken="",
        killer="tests/integration/api/admin/messages/test_bulk_reach.py"
        "::test_a_key_names_no_messages_of_another_group",
    ),
    ProductMutant(
        promise="An action names a message by its whole id",
        file="outbox/postgres/operators/bulk_actions.py",
        rule="and (half_id, status.nonce) in named",
        broken="",
        killer="tests/integration/api/admin/messages/test_bulk_reach.py"
        "::test_an_action_on_named_messages_takes_these_and_no_others",
    ),
    ProductMutant(
        promise="An action waits for its delay",
        file="outbox/postgres/operators/bulk_actions.sql",
        rule="AND (starts_at IS NULL OR starts_at <= clock_timestamp() OR",
        broken="AND (true OR",
        killer="tests/integration/api/admin/messages/test_bulk_actions.py"
        "::test_an_action_waits_for_its_delay_and_is_cancelled_for_good",
    ),
    ProductMutant(
        promise="A cancelled action is never begun",
        file="outbox/postgres/operators/bulk_actions.sql",
        rule="SET cancelled_at = clock_timestamp(), finished_at = clock_timestamp()",
        broken="SET cancelled_at = clock_timestamp()",
        killer="tests/integration/api/admin/messages/test_bulk_actions.py"
        "::test_an_action_waits_for_its_delay_and_is_cancelled_for_good",
    ),
    ProductMutant(
        promise="An age of an action on many messages counts from its dry run",
        file="api/console/pages/bulk_action.py",
        rule="{name: given[name] for name in BOUNDS if name in given}",
        broken="{}",
        killer=f"{CONSOLE}/pages/test_exact_actions.py::test_an_age_counts_from_the_dry_run",
    ),
    ProductMutant(
        promise="An action on a cluster of parked messages takes no others",
        file="api/console/pages/parked.py",
        rule="return f\"{found} outcome:{last['outcome']}{status}\"",
        broken="return f\"{found} outcome:{last['outcome']}\"",
        killer=f"{CONSOLE}/pages/test_exact_actions.py"
        "::test_each_cluster_of_parked_messages_is_searched_and_acted_on_alone",
    ),
    ProductMutant(
        promise="Refused records are found behind newer messages",
        file="outbox/postgres/operators/message_browser.py",
        rule="limit=at_most - 1), held=held))",
        broken="limit=at_most - 1), held=False))",
        killer="tests/integration/api/admin/messages/test_bulk_reach.py"
        "::test_refused_records_are_found_behind_many_newer_committed_messages",
    ),
    ProductMutant(
        promise="An action names its first failures, wherever they are",
        file="outbox/postgres/operators/bulk_actions.py",
        rule='FAILURES_KEPT - row["named"]]',
        broken='FAILURES_KEPT if row["position"] == 0 else 0]',
        killer="tests/integration/api/admin/messages/test_bulk_reach.py"
        "::test_the_first_failures_are_named_wherever_they_are_in_an_action",
    ),
    ProductMutant(
        promise="Only breakers that are not closed are named",
        file="outbox/postgres/checks/producer_groups.sql",
        rule="    AND (NOT %(tripped)s::bool OR b.probe_at IS NOT NULL)\n",
        broken="    AND (NOT %(tripped)s::bool OR true)\n",
        killer="tests/integration/api/admin/test_producer_groups.py"
        "::test_the_groups_whose_breaker_is_not_closed_are_listed_alone",
    ),
    ProductMutant(
        promise="The outcomes of a long day are estimated from a sample of it",
        file="outbox/postgres/maintenance/rates.sql",
        rule="CASE WHEN c.cut_off THEN c.checks * (s.high - s.low) /",
        broken="CASE WHEN false THEN c.checks * (s.high - s.low) /",
        killer="tests/integration/postgres/operators/test_rates.py"
        "::test_the_outcomes_of_a_long_day_are_estimated_from_a_bounded_sample",
    ),
    ProductMutant(
        promise="The console works where metrics have an address of their own",
        file="api/admin/routes/probes.py",
        rule=" and request.state.caller is NOBODY",
        broken="",
        killer=f"{CONSOLE}/test_stores_away.py"
        "::test_every_page_works_while_the_metrics_have_an_address_of_their_own",
    ),
    ProductMutant(
        promise="A transaction that hangs is named with its partition",
        file="outbox/kafka/health/partition_states.py",
        rule="for each in found if each.hangs(now, longest)}",
        broken="for each in found if False}",
        killer="tests/integration/api/admin/test_installation.py"
        "::test_a_partition_shows_where_consumers_stop_and_what_holds_them_up",
    ),
    ProductMutant(
        promise="A stranger's transaction whose age is not known is suspected",
        file="outbox/kafka/health/partition_states.py",
        rule="suspected=each in suspects",
        broken="suspected=False",
        killer="tests/integration/api/admin/test_installation.py"
        "::test_a_transaction_of_a_stranger_is_suspected_if_only_its_own_record_is_old",
    ),
    ProductMutant(
        promise="A count of refused records says when it counted a page of them",
        file="api/console/pages/publishing.py",
        rule='"at least " if held["has_more"] or "cursor" in visit.query else ""',
        broken='""',
        killer=f"{CONSOLE}/pages/test_repair_pages.py"
        "::test_publishing_shows_backlog_errors_and_latency_of_each_topic",
    ),
    ProductMutant(
        promise="A key that has ended and is still used is shown",
        file="outbox/postgres/operators/api_keys.py",
        rule="if key_id not in rows}",
        broken="if False}",
        killer=f"{CONSOLE}/pages/test_repair_pages.py"
        "::test_a_key_that_has_ended_and_is_still_used_is_shown_with_its_successor",
    ),
)
