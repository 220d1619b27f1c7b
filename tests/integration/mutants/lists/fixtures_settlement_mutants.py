"""Mutants of what a takeover settles, of turns, of visibility; what a flush and a run keep."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

SETTLEMENT: Final = "tests/unit/outbox/relay/protocol/test_settlement.py"
UNSEEN: Final = "tests/unit/outbox/relay/test_unseen_batches.py"
TRIMMED: Final = "tests/unit/outbox/relay/test_trimmed_topic.py"
RELAY: Final = "tests/unit/checker/relay"
HALVES: Final = "tests/integration/postgres/messages"

SETTLEMENT_MUTANTS: Final = (
    # -- outbox/relay: what the fence has left open ------------------------------------------------
    ProductMutant(
        promise="What hangs after a fence is ended before anything is published",
        file="outbox/relay/protocol/settlement.py",
        rule="    if settled.hanging:\n",
        broken="    if False:\n",
        killer=f"{SETTLEMENT}"
        "::test_a_transaction_that_hangs_is_ended_by_an_abort_of_the_next_fence",
    ),
    ProductMutant(
        promise="A death before the repairs are ordered lets the batch be read again",
        file="outbox/relay/protocol/settlement.py",
        rule="stored = following.at if learned else cursor",
        broken="stored = following.at",
        killer=f"{SETTLEMENT}::test_what_no_consumer_will_see_is_ordered_by_the_new_owner_alone",
    ),
    ProductMutant(
        promise="A visible batch proves nothing about an older one that is unproven",
        file="outbox/relay/protocol/settlement.py",
        rule="if visible is None or state.unproven or visible",
        broken="if visible is None or visible",
        killer=f"{SETTLEMENT}::test_a_later_batch_does_not_hide_one_that_is_unproven",
    ),
    ProductMutant(
        promise="Repairs come before new messages",
        file="outbox/relay/protocol/publication.py",
        rule="elif state.repairing or not (",
        broken="elif not (",
        killer=f"{SETTLEMENT}::test_repairs_come_before_anything_new",
    ),
    ProductMutant(
        promise="A manifest that hangs is committed only behind the chain that it continues",
        file="outbox/relay/protocol/settlement.py",
        rule="(manifest.batch_no, manifest.prev_crc) == (cursor.batch_no + 1, cursor.crc)",
        broken="True",
        killer=f"{SETTLEMENT}::test_a_manifest_that_does_not_continue_the_chain_is_not_committed",
    ),
    ProductMutant(
        promise="The mode at_least_once begins when what exactly_once left is settled",
        file="outbox/relay/protocol/takeover.py",
        rule="entering=state.at_least_once and cursor is not None and cursor.is_listed",
        broken="entering=False",
        killer=f"{SETTLEMENT}::test_what_exactly_once_left_is_settled_before_at_least_once_begins",
    ),
    ProductMutant(
        promise="The mode at_least_once begins after the repairs are ordered",
        file="outbox/relay/protocol/settlement.py",
        rule="_enter(following, begun[:-1])",
        broken="_enter(following, begun[:1])",
        killer=f"{SETTLEMENT}::test_what_exactly_once_left_is_settled_before_at_least_once_begins",
    ),
    ProductMutant(
        promise="The mode at_least_once waits while the last batches are hidden",
        file="outbox/relay/protocol/settlement.py",
        rule="settled.doubtful or (state.entering and not settled.proven)",
        broken="settled.doubtful",
        killer=f"{SETTLEMENT}"
        "::test_at_least_once_does_not_begin_while_another_program_hides_the_last_batches",
    ),
    ProductMutant(
        promise="An absence that retention explains is not repaired",
        file="outbox/relay/unseen_batches.py",
        rule="if each not in unprovable)",
        broken="if True)",
        killer=f"{UNSEEN}::test_absence_that_retention_explains_proves_nothing",
    ),
    ProductMutant(
        promise="What retention removed from other partitions hides no loss",
        file="outbox/relay/trimmed_topic.py",
        rule="hashed % count for count in counts",
        broken="range(self.partitions)",
        killer=f"{TRIMMED}::test_a_keyed_record_can_be_gone_from_its_own_partition_alone",
    ),
    ProductMutant(
        promise="A message is not doubled because its topic has grown since",
        file="outbox/relay/trimmed_topic.py",
        rule="range(max(1, self.least), self.partitions + 1)",
        broken="(self.partitions,)",
        killer=f"{TRIMMED}::test_a_topic_that_may_have_grown_has_the_earlier_homes_too",
    ),
    ProductMutant(
        promise="What was in a topic before it was created again is not published twice",
        file="outbox/kafka/unseen_records.py",
        rule="return doubtful | expired | replaced",
        broken="return doubtful | expired",
        killer="tests/integration/checker/relay/settlement/test_gone_logs.py"
        "::test_a_topic_that_was_created_again_and_has_grown_past_the_batch_proves_no_loss",
    ),
    ProductMutant(
        promise="What never arrived beside a manifest that hung is published again",
        file="outbox/relay/unseen_batches.py",
        rule="return [each for each in committed if each.offset not in hung]",
        broken="return [*committed]",
        killer=f"{UNSEEN}::test_a_manifest_that_an_empty_one_has_committed_may_lack_its_records",
    ),
    ProductMutant(
        promise="A batch that Kafka does not take in time is published in parts",
        file="outbox/relay/protocol/bisection.py",
        rule="        return replace(state, narrowing=narrow(batch))",
        broken="        return state",
        killer="tests/unit/outbox/relay/protocol/test_publication.py"
        "::test_a_batch_that_fails_again_is_halved",
    ),
    ProductMutant(
        promise="The record that ends an open transaction has PostgreSQL's time",
        file="checker/relay/executor.py",
        rule="self._publisher.heal(asked.partitions, at_ms)",
        broken="self._publisher.heal(asked.partitions)",
        killer=f"{RELAY}/test_executor.py"
        "::test_a_record_that_ends_an_open_transaction_has_the_time_of_postgresql",
    ),
    ProductMutant(
        promise="A time from before the brokers' clock was set back stops no shard",
        file="checker/relay/record_clock.py",
        rule="self._refused = self._taken if is_old else",
        broken="self._refused =",
        killer=f"{RELAY}/test_record_clock.py"
        "::test_a_time_that_kafka_takes_no_more_gives_way_until_kafka_refuses_postgresqls_too",
    ),
    ProductMutant(
        promise="What consumers see of an aborted batch is learned",
        file="outbox/relay/unseen_batches.py",
        rule="known = self._repeatable(position) & seen",
        broken="known = self._repeatable(position) - seen",
        killer=f"{UNSEEN}::test_what_is_visible_and_would_be_published_next_is_learned",
    ),
    ProductMutant(
        promise="A batch that the stored row counts is repaired though its manifest was aborted",
        file="outbox/relay/unseen_batches.py",
        rule="(*self.committed, *self._passed(position), *self._released())",
        broken="(*self.committed, *self._released())",
        killer=f"{UNSEEN}"
        "::test_a_batch_that_the_stored_row_counts_is_listed_though_its_manifest_was_aborted",
    ),
    ProductMutant(
        promise="Records of an aborted batch are looked for from its own time on",
        file="outbox/relay/unseen_batches.py",
        rule="since_ms=_since((*unplaced, *batches.aborted)),",
        broken="since_ms=_since(unplaced),",
        killer=f"{UNSEEN}::test_an_aborted_batch_is_looked_for_by_its_time",
    ),
    # -- checker/relay: visibility and turns -------------------------------------------------------
    ProductMutant(
        promise="A batch is visible when all of its partitions are",
        file="checker/relay/visibility.py",
        rule="    return all(stable.get(partition, -1) >= end",
        broken="    return any(stable.get(partition, -1) >= end",
        killer=f"{RELAY}/test_visibility.py"
        "::test_a_batch_is_visible_when_both_its_records_and_its_manifest_are",
    ),
    ProductMutant(
        promise="What a dropped producer had published counts as unconfirmed",
        file="checker/relay/visibility.py",
        rule="            self._doubtful_since.setdefault(shard, batch.since)",
        broken="            del batch",
        killer=f"{RELAY}/test_visibility.py"
        "::test_what_a_dropped_producer_had_published_stays_unconfirmed_until_it_was_read",
    ),
    ProductMutant(
        promise="Shards publish in the order in which they asked",
        file="checker/relay/publish_slots.py",
        rule="self._waiting.popleft().set()",
        broken="self._waiting.pop().set()",
        killer=f"{RELAY}/test_publish_slots.py"
        "::test_slots_are_given_out_in_the_order_of_the_requests",
    ),
    ProductMutant(
        promise="A shard that gave up waiting takes no slot with it",
        file="checker/relay/publish_slots.py",
        rule="            self._waiting.remove(called)\n",
        broken="",
        killer=f"{RELAY}/test_publish_slots.py"
        "::test_a_stuck_slot_delays_the_others_only_for_a_moment",
    ),
    # -- api/http: refused batches -----------------------------------------------------------------
    ProductMutant(
        promise="Refused batches of one tenant leave most of the time to others",
        file="api/http/rate_limits.py",
        rule="+ PAUSE_FACTOR * spent_seconds",
        broken="+ spent_seconds",
        killer="tests/unit/api/http/test_rate_limits.py"
        "::test_refused_batches_of_a_tenant_take_a_sixth_of_the_time",
    ),
    ProductMutant(
        promise="A refused batch that waits takes no room",
        file="api/http/rate_limits.py",
        rule="        with self._in_flight.resting():\n            await",
        broken="        if True:\n            await",
        killer="tests/unit/api/http/test_rate_limits.py::test_a_waiting_batch_takes_no_room",
    ),
    # -- outbox/postgres: one flush, and findings that stay open -----------------------------------
    ProductMutant(
        promise="A half is in a shard in use",
        file="outbox/postgres/messages/half_flush.py",
        rule="shard_of(content.topic, content.key, nonce) % shards",
        broken="shard_of(content.topic, content.key, nonce)",
        killer=f"{HALVES}/test_half_store.py"
        "::test_halves_have_shards_in_use_alone_and_one_for_each_key",
    ),
    ProductMutant(
        promise="A flush with a deleted group leaves no transaction id behind",
        file="outbox/postgres/sessions/copy_exchange.py",
        rule='_end(connection.pgconn, b"", b"given up")',
        broken='_end(connection.pgconn, b"", None)',
        killer=f"{HALVES}/test_half_flush.py"
        "::test_a_deleted_groups_messages_leave_no_transaction_id",
    ),
    ProductMutant(
        promise="A fault that a run has seen stays open when its record has expired",
        file="outbox/postgres/reconciliation/findings.sql",
        rule="expired.half OR expired.record OR f.class = ANY",
        broken="expired.half OR f.class = ANY",
        killer="tests/integration/postgres/reconciliation/test_run_store.py"
        "::test_a_fault_stays_open_when_its_record_has_expired_until_its_half_is_retired_too",
    ),
    ProductMutant(
        promise="A duplicate stays open when any of its records has expired",
        file="outbox/postgres/reconciliation/findings.sql",
        rule='WHERE place."offset" < log_of_place.start',
        broken="WHERE false",
        killer="tests/integration/postgres/reconciliation/test_run_store.py"
        "::test_a_duplicate_stays_open_when_any_of_its_records_has_expired",
    ),
    ProductMutant(
        promise="Audits keep their order when the clock is set back",
        file="outbox/postgres/reconciliation/run_store.sql",
        rule="max(finished_at) + interval '1 microsecond'",
        broken="min(started_at)",
        killer="tests/integration/postgres/reconciliation/test_run_store.py"
        "::test_runs_keep_their_order_and_their_findings_when_the_clock_is_set_back",
    ),
    ProductMutant(
        promise="A finding of a topic that no run reads stays open",
        file="outbox/postgres/reconciliation/findings.sql",
        rule="WHEN expired.unread AND NOT expired.half THEN NULL",
        broken="WHEN false THEN NULL",
        killer="tests/integration/postgres/reconciliation/test_run_store.py"
        "::test_a_finding_about_records_of_an_excluded_topic_stays_open_until_its_half_is_retired",
    ),
    ProductMutant(
        promise="An owner gives signs of life while it reads its last batches",
        file="checker/relay/settlement.py",
        rule="            self._commit_log.beat()\n",
        broken="            pass\n",
        killer="tests/integration/checker/relay/settlement/test_long_settlement.py"
        "::test_a_standby_sees_that_the_owner_lives_while_it_reads_its_last_batches",
    ),
    ProductMutant(
        promise="The brokers' time in a record proves no absence",
        file="outbox/kafka/unseen_records.py",
        rule="if sent.topic in stamped\n",
        broken="if False\n",
        killer="tests/integration/checker/relay/publication/test_stamped_topics.py"
        "::test_a_visible_record_is_not_published_again_though_the_brokers_clock_is_late",
    ),
)
