"""Mutants of the checker, of its calls over HTTP, of Kafka's settings and of the log."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

API: Final = "tests/integration/api"
ENDPOINT: Final = "tests/integration/http_checks/test_endpoint.py"
ANSWERS: Final = "tests/unit/outbox/http_checks/test_classification.py"
REQUESTS: Final = "tests/unit/outbox/http_checks/test_request.py"
SETTLEMENT: Final = "tests/unit/checker/checks/test_settlement.py"
SCHEDULER: Final = "tests/unit/checker/checks/test_group_scheduler.py"
EXECUTOR: Final = "tests/unit/checker/relay/test_executor.py"
DEFAULT_LEAF_READS: Final = "tests/integration/checker/maintenance/test_default_leaf_reads.py"

CHECKER_MUTANTS: Final = (
    ProductMutant(
        promise="Every connection to the address for metrics ends",
        file="outbox/telemetry/page_listener.py",
        rule="asyncio.timeout(CONNECTION_SECONDS)",
        broken="asyncio.timeout(None)",
        killer=(
            "tests/integration/checker/maintenance/test_metrics_server.py"
            "::test_every_connection_ends[nothing]"
        ),
    ),
    ProductMutant(
        promise="Connections to the address for metrics are few",
        file="outbox/telemetry/page_listener.py",
        rule="if len(self._open) > CONNECTIONS_MAX:",
        broken="if False:",
        killer=(
            "tests/integration/checker/maintenance/test_metrics_server.py"
            "::test_the_oldest_of_too_many_connections_ends_and_newcomers_are_answered[nothing]"
        ),
    ),
    ProductMutant(
        promise="An absurd Retry-After is one question, not one for each half of the batch",
        file="outbox/http_checks/classification.py",
        rule="int(text[:10])",
        broken="int(text)",
        killer=(
            "tests/integration/checker/checks/test_outcomes.py"
            "::test_an_absurd_retry_after_is_one_question_for_a_whole_batch_and_not_the_last[huge]"
        ),
    ),
    ProductMutant(
        promise="A verdict counts for the message that was asked about alone",
        file="outbox/http_checks/classification.py",
        rule='if document.get("message_id") != message_id:',
        broken="if False:",
        killer=f"{ANSWERS}::test_a_200_that_is_no_verdict_is_spent_and_decides_nothing",
    ),
    ProductMutant(
        promise="Two decisions for one message of a batch decide nothing",
        file="outbox/http_checks/classification.py",
        rule="if len({answer.outcome for answer in answers}) > 1:",
        broken="if False:",
        killer=f"{ANSWERS}::test_two_decisions_for_one_id_are_bad_for_that_message_alone",
    ),
    ProductMutant(
        promise="A page of HTML is no verdict",
        file="outbox/http_checks/classification.py",
        rule='.strip().lower() != "application/json":',
        broken='.strip().lower() == "":',
        killer=f"{ANSWERS}::test_a_verdict_in_the_wrong_wrapping_is_no_verdict",
    ),
    ProductMutant(
        promise="Both secrets sign while the previous one is valid",
        file="outbox/http_checks/request.py",
        rule="for secret in group.secrets]",
        broken="for secret in group.secrets[:1] * 2]",
        killer=f"{REQUESTS}::test_both_secrets_sign_while_the_previous_one_is_valid",
    ),
    ProductMutant(
        promise="A check carries no value unless the group asks for it",
        file="outbox/http_checks/request.py",
        rule="return {**check, **_payload(half)} if group.check_payload else check",
        broken="return {**check, **_payload(half)}",
        killer=f"{REQUESTS}::test_a_check_names_the_message_and_nothing_of_its_value",
    ),
    ProductMutant(
        promise="A redirect is never followed",
        file="outbox/http_checks/endpoint.py",
        rule="allow_redirects=False,",
        broken="allow_redirects=True,",
        killer=f"{ENDPOINT}::test_a11_a_redirect_is_never_followed[307]",
    ),
    ProductMutant(
        promise="An egress proxy is never asked for a name with an inner address",
        file="outbox/http_checks/endpoint.py",
        rule="await self._resolver.resolve(url.host, url.port)",
        broken="pass",
        killer=(
            f"{ENDPOINT}"
            "::test_through_an_egress_proxy_a_name_with_an_inner_address_is_never_asked_for"
        ),
    ),
    ProductMutant(
        promise="No notice goes through a proxy to a name with an inner address",
        file="outbox/http_checks/webhook.py",
        rule="await target.resolver.resolve(url.host, url.port)",
        broken="pass",
        killer=(
            "tests/integration/http_checks/test_webhook.py"
            "::test_through_an_egress_proxy_no_notice_goes_to_a_name_with_an_inner_address"
        ),
    ),
    ProductMutant(
        promise="The address of the socket is judged, not only the name's",
        file="outbox/http_checks/guarded_connector.py",
        rule="        refuse(str(info[4][0]))\n        return small_socket",
        broken="        return small_socket",
        killer=f"{ENDPOINT}::test_the_address_is_judged_again_when_the_socket_is_made",
    ),
    ProductMutant(
        promise="Interim answers without end end a call",
        file="outbox/http_checks/check_response.py",
        rule="            if left < 0:\n",
        broken="            if False:\n",
        killer=(f"{ENDPOINT}::test_interim_answers_without_end_end_a_call_before_its_time[10000]"),
    ),
    ProductMutant(
        promise="An answer that nobody asked for counts for no later check",
        file="outbox/http_checks/guarded_connector.py",
        rule="force_close=True,",
        broken="",
        killer=(f"{ENDPOINT}::test_i14_an_answer_that_nobody_asked_for_counts_for_no_later_check"),
    ),
    ProductMutant(
        promise="Ends are written in the order in which their answers arrived",
        file="checker/checks/settlement.py",
        rule="    for result in passed:\n",
        broken="    for result in sorted(passed, key=lambda each: each.row.look_id):\n",
        killer=f"{SETTLEMENT}::test_ends_are_in_the_order_in_which_their_answers_arrived",
    ),
    ProductMutant(
        promise="A cursor stops before the first row that is not done",
        file="checker/checks/settlement.py",
        rule="        elif row.delay_seconds not in stopped:\n",
        broken="        else:\n",
        killer=f"{SETTLEMENT}::test_a_cursor_stops_before_the_first_row_that_is_not_done",
    ),
    ProductMutant(
        promise="The policy does not roll back after an answer that was no UNKNOWN",
        file="checker/checks/settlement.py",
        rule="            and not (answer.spent and answer.outcome is not Outcome.UNKNOWN),",
        broken="            and True,",
        killer=(f"{SETTLEMENT}::test_an_answer_without_verdict_is_spent_and_silence_is_not"),
    ),
    ProductMutant(
        promise="An endpoint that is gone pauses its group",
        file="checker/checks/settlement.py",
        rule="pause_reason=ENDPOINT_GONE if gone else None,",
        broken="pause_reason=None,",
        killer=f"{SETTLEMENT}::test_410_pauses_the_group",
    ),
    ProductMutant(
        promise="After a batch that raises, each of its halves is asked",
        file="checker/checks/check_caller.py",
        rule="singly = [await self._call(round_, [row]) for row in batch]",
        broken="singly = [await self._call(round_, [row]) for row in batch[:1]]",
        killer=f"{SCHEDULER}::test_the_halves_of_a_batch_that_raises_are_asked_one_by_one",
    ),
    ProductMutant(
        promise="A hanging group leaves calls to the others",
        file="checker/checks/fair_semaphore.py",
        rule="            if self._held[group_id] >= self._free:\n",
        broken="            if not self._free:\n",
        killer=(
            "tests/unit/checker/checks/test_fair_semaphore.py"
            "::test_one_hanging_group_leaves_half_of_the_calls"
        ),
    ),
    ProductMutant(
        promise="The alarm for rows without a leaf is set before anything may fail",
        file="checker/maintenance/partition_maintenance.py",
        rule="        alone = await self._show_default_rows()\n",
        broken="        alone = True\n",
        killer=(
            "tests/unit/checker/maintenance/test_partition_maintenance.py"
            "::test_the_alarm_is_set_before_anything_may_fail"
        ),
    ),
    ProductMutant(
        promise="What is kept of removed leaves is not taken for rows that nobody made a leaf for",
        file="migrations/versions/0031_default_leaf_looks.sql",
        rule="            UNION SELECT r.leaf FROM outbox.retired_leaf r\n",
        broken="",
        killer=(
            f"{DEFAULT_LEAF_READS}"
            "::test_a_look_for_missing_leaves_reads_nothing_that_is_kept_of_removed_ones[new-20000]"
        ),
    ),
    ProductMutant(
        promise="A kept message that may go goes, however many are kept before it",
        file="outbox/postgres/maintenance/retention.py",
        rule='few = {"after": self._looked_at, ',
        broken='few = {"after": 0, ',
        killer=f"{DEFAULT_LEAF_READS}::test_every_kept_message_that_may_go_goes_some_time",
    ),
    ProductMutant(
        promise="The time of a stranger's record is no proof that its transaction hangs",
        file="outbox/kafka/health/open_transactions.py",
        rule="known=began if is_known else _relay_came_after(consumer),",
        broken="known=began,",
        killer=(
            "tests/integration/kafka/health/test_doctor.py"
            "::test_a_transaction_of_a_stranger_hangs_when_a_broker_or_a_relay_gave_the_time"
            "[nothing-behind]"
        ),
    ),
    ProductMutant(
        promise="A dead relay is not alive because the clock was set back",
        file="outbox/postgres/maintenance/readiness.sql",
        rule="        AND p.updated_at <= clock_timestamp() + make_interval("
        "secs => %(silent_after)s)\n",
        broken="",
        killer=(
            f"{API}/metrics/test_probes.py"
            "::test_a_heartbeat_from_before_the_clock_was_set_back_is_none"
        ),
    ),
    ProductMutant(
        promise="No relay starts before the servers are found safe",
        file="checker/relay/threads.py",
        rule="while (admission := self._admit()) is not Admission.ADMITTED:",
        broken="while (admission := self._admit()) is Admission.UNREACHABLE:",
        killer=(
            "tests/unit/checker/relay/test_threads.py"
            "::test_no_relay_starts_before_the_servers_are_found_safe"
        ),
    ),
    ProductMutant(
        promise="Each batch between two saves is logged as published",
        file="checker/relay/executor.py",
        rule="        self._unlogged.settle(batch.batch_no - 1, batch.prev_crc)\n",
        broken="",
        killer=f"{EXECUTOR}::test_each_batch_between_two_saves_is_logged_as_published",
    ),
    ProductMutant(
        promise="An aborted batch is never logged as published",
        file="checker/relay/unlogged_batches.py",
        rule="if (doubtful.batch_no, doubtful.crc) == (batch_no, crc):",
        broken="if True:",
        killer=(
            f"{EXECUTOR}::test_an_aborted_batch_is_not_logged_where_another_owner_used_its_number"
        ),
    ),
    ProductMutant(
        promise="A batch of which nothing is known yet is not logged as published",
        file="checker/relay/unlogged_batches.py",
        rule="if doubtful is not None and doubtful.batch_no <= batch_no:",
        broken="if doubtful is not None:",
        killer=(
            f"{EXECUTOR}::test_a_batch_in_doubt_is_logged_once_its_manifest_is_found_in_the_chain"
        ),
    ),
    ProductMutant(
        promise="The stored row is read before the end of the log",
        file="checker/relay/executor.py",
        rule=(
            "        progress = self._commit_log.progress()\n"
            "        return answers.Bounds(progress, *self._progress_log.bounds())\n"
        ),
        broken=(
            "        bounds = self._progress_log.bounds()\n"
            "        return answers.Bounds(self._commit_log.progress(), *bounds)\n"
        ),
        killer=f"{EXECUTOR}::test_the_row_is_never_ahead_of_the_log_while_another_owner_works",
    ),
    # -- outbox/kafka, outbox/telemetry -----------------------------------------------------------
    ProductMutant(
        promise="A relay that was fenced adopts no manifest of its successor",
        file="outbox/kafka/progress_log.py",
        rule=" and _offset(message) < end:",
        broken=":",
        killer=(
            "tests/integration/kafka/test_progress_log.py"
            "::test_a_manifest_after_the_end_is_not_read_in_place_of_aborted_ones"
        ),
    ),
    ProductMutant(
        promise="A property that delivery depends on is refused by any of its names",
        file="outbox/kafka/client_config.py",
        rule="if _ALIASES.get(name, name) in {",
        broken="if name in {",
        killer=(
            "tests/unit/outbox/kafka/test_client_config.py"
            "::test_a_property_that_delivery_depends_on_is_refused_by_name"
        ),
    ),
    ProductMutant(
        promise="A shard's transactional id is always the same",
        file="outbox/kafka/client_config.py",
        rule='return f"{prefix}.{installation}.{shard}"',
        broken='return f"{prefix}.{installation}.{shard}.{id(object())}"',
        killer=(
            "tests/unit/outbox/kafka/test_client_config.py"
            "::test_a_shards_transactional_id_is_always_the_same"
        ),
    ),
    ProductMutant(
        promise="No row's contents are in a log line",
        file="outbox/telemetry/exception_format.py",
        rule='    if diagnosis is None or not getattr(diagnosis, "message_primary", None):\n',
        broken="    if True:\n",
        killer=f"{API}/http/test_canary_secrets.py::test_no_secret_or_payload_is_in_an_answer_a_log_line_or_a_metric",
    ),
)
