"""Mutants of the API: its limits, its scopes and the way of a prepare."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

API: Final = "tests/integration/api"

API_MUTANTS: Final = (
    ProductMutant(
        promise="A request whose answer nobody reads takes no room",
        file="api/guard.py",
        rule="            with self._in_flight.resting():\n                await send(message)\n",
        broken="            await send(message)\n",
        killer=f"{API}/http/connection/test_slow_bodies.py::test_answers_that_nobody_reads_take_no_room",
    ),
    ProductMutant(
        promise="An object of thousands of members is refused before each of them is",
        file="api/http/json_body.py",
        rule="    if _most_members(value) > MEMBERS_MAX:\n",
        broken="    if False:\n",
        killer=f"{API}/ingest/test_hostile_batches.py"
        "::test_a_body_is_refused_for_its_form_before_thousands_of_its_rules_are_judged",
    ),
    ProductMutant(
        promise="The refusal of a repeated prepare says that no local transaction may run",
        file="api/ingest/answers.py",
        rule="already_ended(outcome.status, PREPARED_BEFORE)",
        broken="already_ended(outcome.status)",
        killer=(
            f"{API}/ingest/test_main_path.py::test_a_repeated_prepare_of_a_decided_message_is"
            "_refused_with_the_decision[asgi-COMMIT]"
        ),
    ),
    ProductMutant(
        promise="The system keeps little of what a client does not read",
        file="api/http/connection/protocol.py",
        rule="        self._set_option(socket.SO_SNDBUF, SEND_BUFFER_BYTES)\n",
        broken="",
        killer=(
            f"{API}/http/connection/test_connections.py"
            "::test_what_a_client_leaves_unread_is_little_and_is_dropped_in_time"
        ),
    ),
    ProductMutant(
        promise="A connection that has ended takes no memory",
        file="api/http/connection/protocol.py",
        rule="        self._closing.release()\n",
        broken="",
        killer=(
            f"{API}/http/connection/test_connections.py::test_a_connection_that_has_ended_takes_no_memory"
        ),
    ),
    ProductMutant(
        promise="A batch costs a token of the rate for each of its items",
        file="api/ingest/hot_routes.py",
        rule="self._prepares.spend(request.caller, items)",
        broken="self._prepares.spend(request.caller)",
        killer=(
            f"{API}/ingest/test_rate_limits.py::test_a_batch_costs_a_token_for_each_of_its_items"
        ),
    ),
    ProductMutant(
        promise="The keys whose rates are counted take a bounded amount of memory",
        file="api/http/rate_limits.py",
        rule="if len(self._buckets) > KEYS_MAX:",
        broken="if False:",
        killer=(
            "tests/unit/api/http/test_rate_limits.py"
            "::test_a_bounded_number_of_keys_is_remembered_those_in_use"
        ),
    ),
    ProductMutant(
        promise="A batch larger than the bucket leaves a debt",
        file="api/http/rate_limits.py",
        rule="bucket.tokens -= items",
        broken="bucket.tokens -= min(items, bucket.tokens)",
        killer=(
            "tests/unit/api/http/test_rate_limits.py"
            "::test_a_batch_counts_its_items_and_a_larger_one_passes_and_leaves_a_debt"
        ),
    ),
    ProductMutant(
        promise="A caller is known before its body is read",
        file="api/guard.py",
        rule="        if not caller.has(route.scope):\n",
        broken="        if False:\n",
        killer=f"{API}/http/authentication/test_routes_and_keys.py::test_a_route_needs_its_scope[end]",
    ),
    ProductMutant(
        promise="An operator's decision is logged with the operator as who decided",
        file="api/admin/routes/half_messages.py",
        rule="decided_by=DecidedBy.OPERATOR,",
        broken="",
        killer=(
            f"{API}/admin/messages/test_operations.py"
            "::test_an_operators_decision_wins_like_any_other_and_is_audited"
        ),
    ),
    ProductMutant(
        promise="A transaction id and another Idempotency-Key are refused together",
        file="api/ingest/prepare_rules.py",
        rule="if given is not None and given != alias:",
        broken="if False:",
        killer=f"{API}/ingest/test_bad_prepare.py::test_a_wrong_idempotency_key_is_refused",
    ),
    ProductMutant(
        promise="A group writes only the topics of its list",
        file="api/ingest/ingest.py",
        rule='topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed',
        broken='topic.startswith(allowed.rstrip("*"))',
        killer=f"{API}/ingest/test_bad_prepare.py::test_a_topic_that_the_group_may_not_write_is_refused",
    ),
    ProductMutant(
        promise="Nothing is refused while Kafka is away",
        file="api/ingest/topic_cache.py",
        rule="if self._has(topic, partition) or not self.reachable or topic in self._created:",
        broken="if self._has(topic, partition) or topic in self._created:",
        killer=(
            "tests/unit/api/ingest/test_topic_cache.py"
            "::test_nothing_is_refused_and_no_prepare_waits_while_kafka_is_down"
        ),
    ),
    ProductMutant(
        promise="No caller is answered before its flush has committed",
        file="api/ingest/batcher.py",
        rule="            outcomes = await self._flush(items)\n        except Exception as error:",
        broken=(
            "            flush = asyncio.ensure_future(self._flush(items))\n"
            "            outcomes = [None] * len(items) if not flush.done() else flush.result()\n"
            "        except Exception as error:"
        ),
        killer=(
            "tests/unit/api/ingest/test_batcher.py"
            "::test_no_caller_is_answered_before_the_flush_has_returned"
        ),
    ),
    ProductMutant(
        promise="No header of a whole answer ends its line, not even by a carriage return",
        file="api/http/connection/cycle.py",
        rule="if len(head) - len(head.translate(None, CONTROLS)) != 2 * len(headers):",
        broken='if head.count(b"\\n") != len(headers):',
        killer=(
            "tests/unit/api/http/connection/test_cycle.py"
            "::test_a_header_cannot_end_its_line[carriage-return]"
        ),
    ),
    ProductMutant(
        promise="A whole answer has the headers of every answer",
        file="api/http/connection/cycle.py",
        rule='[*self.default_headers, *message["headers"]]',
        broken='[*message["headers"]]',
        killer=(
            f"{API}/http/connection/test_whole_answers.py"
            "::test_a_hot_answer_has_the_headers_that_every_answer_has"
        ),
    ),
    ProductMutant(
        promise="A request takes room once its body is complete",
        file="api/guard.py",
        rule="        self._refuse_for_load(route)\n        if route is None:\n            body = ",
        broken=(
            "        self._refuse_for_load(route)\n        self._in_flight.__enter__()\n"
            "        if route is None:\n            body = "
        ),
        killer=f"{API}/http/connection/test_slow_bodies.py::test_bodies_that_come_slowly_refuse_no_request",
    ),
    ProductMutant(
        promise="Incomplete bodies hold a bounded amount of memory",
        file="api/http/request_limits.py",
        rule="while self._free < 0:",
        broken="while False:",
        killer=(
            f"{API}/http/connection/test_slow_bodies.py"
            "::test_incomplete_bodies_hold_a_bounded_amount_of_memory_of_who_sends_most"
        ),
    ),
    ProductMutant(
        promise="The tenant who holds most pays for an excess of incomplete bodies",
        file="api/http/request_limits.py",
        rule="if each.tenant == most and each.size)",
        broken="if each.size)",
        killer=(
            f"{API}/http/connection/test_slow_bodies.py"
            "::test_incomplete_bodies_hold_a_bounded_amount_of_memory_of_who_sends_most"
        ),
    ),
    ProductMutant(
        promise="The context of a prepare's span is stored with the message",
        file="api/ingest/message_spans.py",
        rule="return replace(content, traceparent=self._spans.traceparent_of(span))",
        broken="return content",
        killer=(
            f"{API}/ingest/test_message_spans.py"
            "::test_a_prepare_continues_its_caller_and_its_context_is_stored"
        ),
    ),
    ProductMutant(
        promise="What Kafka refuses has a gauge of its own",
        file="api/metrics/table_gauges.py",
        rule="        if count.state == HELD:\n",
        broken="        if False:\n",
        killer=(
            f"{API}/metrics/test_probes.py::test_held_messages_have_a_gauge_by_group_and_topic"
        ),
    ),
    ProductMutant(
        promise="A check has a span only if its prepare has one",
        file="outbox/telemetry/spans.py",
        rule="recorded = any(link.context.trace_flags.sampled for link in links)",
        broken="recorded = True",
        killer=(
            "tests/integration/http_checks/test_check_spans.py"
            "::test_a_check_of_a_prepare_that_was_not_recorded_has_no_span"
        ),
    ),
    ProductMutant(
        promise="Chunks that are too small end a connection",
        file="api/http/connection/protocol.py",
        rule="        self._chunks += 1\n",
        broken="",
        killer=(
            f"{API}/http/connection/test_framing_matrix.py"
            "::test_small_chunks_without_end_are_refused_after_the_answer_too"
        ),
    ),
    ProductMutant(
        promise="A head of small headers takes little memory beside its bytes",
        file="api/http/connection/protocol.py",
        rule="len(name) + len(value) + HEADER_BYTES",
        broken="len(name) + len(value)",
        killer=(
            f"{API}/http/connection/test_framing_matrix.py"
            "::test_a_head_of_thousands_of_small_headers_is_refused_before_its_end"
        ),
    ),
    ProductMutant(
        promise="The heads of pipelined requests take little memory",
        file="api/http/connection/protocol.py",
        rule="return heads > HEAD_MAX_BYTES or len(self.pipeline)",
        broken="return len(self.pipeline)",
        killer=(
            f"{API}/http/connection/test_framing_matrix.py"
            "::test_the_heads_that_wait_on_one_connection_take_as_much_memory_as_one_head"
        ),
    ),
    ProductMutant(
        promise="A key is verified again five seconds after the query that verified it began",
        file="api/http/authentication/key_verifier.py",
        rule="                each.verified.set_result((began, key))\n",
        broken="                each.verified.set_result((self._clock.monotonic(), key))\n",
        killer=(
            f"{API}/http/authentication/test_remembered_keys.py"
            "::test_a_slow_verification_does_not_prolong_the_time[4.0]"
        ),
    ),
    ProductMutant(
        promise="A bounded number of invented keys waits for verification",
        file="api/http/authentication/key_verifier.py",
        rule="if self._bounded and len(self._next) >= WAITING_MAX:",
        broken="if False:",
        killer=(
            f"{API}/http/authentication/test_invented_keys.py"
            "::test_few_invented_tokens_wait_and_no_tenant_is_refused_for_them"
        ),
    ),
    ProductMutant(
        promise="A key that nobody waits for any more costs nothing",
        file="api/http/authentication/key_verifier.py",
        rule="            if not asked.waiting and self._next.get(token) is asked:\n",
        broken="            if False:\n",
        killer=(
            f"{API}/http/authentication/test_invented_keys.py"
            "::test_a_token_is_asked_about_only_while_somebody_waits_for_it"
        ),
    ),
    ProductMutant(
        promise="A session that was given up ends in PostgreSQL",
        file="outbox/postgres/sessions/connections.py",
        rule="client_connection_check_interval=1000",
        broken="client_connection_check_interval=0",
        killer=(
            f"{API}/ingest/test_database_stands_still.py"
            "::test_slow_reads_that_were_given_up_leave_connections_to_prepares_too"
        ),
    ),
    ProductMutant(
        promise="An admission ends though SQL mode publishes without a pause",
        file="outbox/postgres/messages/sql_outbox.sql",
        rule="    WHERE pg_visible_in_snapshot(",
        broken="    WHERE true OR pg_visible_in_snapshot(",
        killer=(
            "tests/integration/postgres/messages/test_sql_outbox.py"
            "::test_a_producer_that_never_pauses_keeps_no_admission_and_so_no_end_waiting"
        ),
    ),
)
