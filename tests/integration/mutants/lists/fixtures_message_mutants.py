"""Mutants of what PostgreSQL keeps of messages, and of what the relay reads and writes there."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

STORE: Final = "tests/contract/test_half_store.py"
MESSAGES: Final = "tests/integration/postgres/messages"
RELAY: Final = "tests/integration/postgres/relay"
PROGRESS: Final = f"{RELAY}/test_progress_row.py"
PUBLICATIONS: Final = f"{RELAY}/test_publication_log.py"
API: Final = "tests/integration/api"
FIELDS: Final = (
    "tests/unit/outbox/postgres/messages/test_half_rows.py"
    "::test_another_value_of_a_field_is_another_request"
)

PREPARE_MUTANTS: Final = (
    # -- What a repeated prepare is compared by ---------------------------------------------------
    ProductMutant(
        promise="A repeated prepare without a value is not one with an empty value",
        file="outbox/postgres/messages/half_rows.py",
        rule="content.key,\n        content.value,\n        dict(",
        broken="content.key,\n        content.value or b'',\n        dict(",
        killer=f"{FIELDS}[value--None]",
    ),
    ProductMutant(
        promise="A repeated prepare without a key is not one with an empty key",
        file="outbox/postgres/messages/half_rows.py",
        rule="content.key,\n        content.value,\n        dict(",
        broken="content.key or b'',\n        content.value,\n        dict(",
        killer=f"{FIELDS}[key--None]",
    ),
    ProductMutant(
        promise="A repeated prepare with another content type is another request",
        file="outbox/postgres/messages/half_rows.py",
        rule="        content.content_type,\n        message.tags,",
        broken="        message.tags,",
        killer=f"{FIELDS}[content_type-application/json-text/plain]",
    ),
    ProductMutant(
        promise="A repeated prepare with another immunity is another request",
        file="outbox/postgres/messages/half_rows.py",
        rule="        message.tags,\n        message.check_immunity_seconds,",
        broken="        message.tags,",
        killer=f"{FIELDS}[check_immunity_seconds-60-61]",
    ),
    ProductMutant(
        promise="A repeated prepare with other headers is another request",
        file="outbox/postgres/messages/half_rows.py",
        rule="        dict(content.headers),",
        broken="        len(content.headers),",
        killer=FIELDS,
    ),
    ProductMutant(
        promise="A repeated prepare for another partition is another request",
        file="outbox/postgres/messages/half_rows.py",
        rule="content.partition,\n        content.key,\n        content.value,\n        dict(",
        broken="content.key,\n        content.value,\n        dict(",
        killer=f"{FIELDS}[partition-3-4]",
    ),
    ProductMutant(
        promise="A repeated prepare of a decided message is refused with its decision",
        file="outbox/postgres/messages/repeated_prepares.py",
        rule="if status.op is not None:",
        broken="if False:",
        killer=f"{STORE}::test_a_repeated_prepare_of_a_decided_message_answers_with_its_decision",
    ),
    ProductMutant(
        promise="A transaction id with other content is refused",
        file="outbox/postgres/messages/repeated_prepares.py",
        rule="if half is None or not same_request(half.message, message):",
        broken="if half is None:",
        killer=f"{STORE}::test_a_transaction_id_with_other_content_is_refused[postgres]",
    ),
    ProductMutant(
        promise="A transaction id makes one half, also within one flush",
        file="outbox/postgres/messages/half_flush.py",
        rule="half.message.transaction_id is None or half.half_id in won",
        broken="True",
        killer=f"{STORE}::test_twins_in_one_flush_make_one_half[postgres]",
    ),
    ProductMutant(
        promise="A half with a null value is read back with a null value",
        file="outbox/postgres/messages/half_rows.py",
        rule="_bytea(content.value)",
        broken="_bytea(content.value or b'')",
        killer=f"{STORE}::test_everything_of_a_half_is_read_back_as_it_was_sent[postgres]",
    ),
    ProductMutant(
        promise="No half is stored for a group that was deleted",
        file="outbox/postgres/messages/half_flush.py",
        rule="    if gone:\n",
        broken="    if False:\n",
        killer=(
            f"{API}/ingest/test_lived_installation.py"
            "::test_a_prepare_right_after_the_deletion_of_its_group_is_refused_by_every_process"
        ),
    ),
    ProductMutant(
        promise="Only the row that PostgreSQL refuses fails",
        file="outbox/postgres/messages/half_store.py",
        rule="    middle = len(messages) // 2\n",
        broken="    return [Unstorable(detail=type(error).__name__)] * len(messages)\n",
        killer=f"{MESSAGES}/test_half_store.py::test_only_the_row_that_postgresql_refuses_fails",
    ),
)

DECISION_MUTANTS: Final = (
    ProductMutant(
        promise="A guessed message id decides nothing",
        file="outbox/postgres/messages/decisions.sql",
        rule="WHERE h.nonce = asked.nonce AND o.standing IS NULL",
        broken="WHERE o.standing IS NULL",
        killer=f"{STORE}::test_an_id_with_wrong_random_bits_looks_like_an_unknown_one[postgres]",
    ),
    ProductMutant(
        promise="A key of another group decides nothing",
        file="outbox/postgres/messages/decisions.sql",
        rule="AND (asked.caller IS NULL OR (asked.caller",
        broken="AND (true OR (asked.caller",
        killer=f"{STORE}::test_a_foreign_groups_message_looks_like_an_unknown_one[postgres]",
    ),
    ProductMutant(
        promise="An end that names another transaction id decides nothing",
        file="outbox/postgres/messages/decisions.sql",
        rule="AND (asked.transaction_id IS NULL OR asked.transaction_id = h.transaction_id)",
        broken="",
        killer=(
            f"{STORE}::test_a_transaction_id_that_is_not_the_messages_looks_like_an_unknown_one"
            "[postgres]"
        ),
    ),
    ProductMutant(
        promise="The commit log lists a flush in order of arrival",
        file="outbox/postgres/messages/decisions.sql",
        rule="array_agg(half_id ORDER BY place), array_agg(content_digest ORDER BY place)",
        broken="array_agg(half_id ORDER BY half_id), array_agg(content_digest ORDER BY half_id)",
        killer=(
            f"{MESSAGES}/test_half_store.py"
            "::test_a_commit_log_row_lists_a_shards_commits_in_order_of_arrival"
        ),
    ),
    ProductMutant(
        promise="What is rolled back is never published",
        file="outbox/postgres/messages/decisions.sql",
        rule="WHERE decision = 1 AND",
        broken="WHERE decision > 0 AND",
        killer=(
            f"{API}/ingest/test_main_path.py::test_a4_a_rollback_is_one_op_and_nothing_to_publish"
        ),
    ),
    ProductMutant(
        promise="An end with UNKNOWN of a decided message gets the decision and is not refused",
        file="outbox/postgres/messages/decisions.py",
        rule="end.decision not in (op.decision, Resolution.UNKNOWN)",
        broken="end.decision != op.decision",
        killer=f"{STORE}::test_an_end_with_unknown_of_a_decided_message_gets_the_decision",
    ),
    ProductMutant(
        promise="An end against the stored decision gets the stored decision",
        file="outbox/postgres/messages/decisions.py",
        rule="    conflict = op is not None and ",
        broken="    conflict = False and ",
        killer=f"{STORE}::test_the_first_decision_is_final",
    ),
    ProductMutant(
        promise="In the middle of a commit row only what the relay has passed is published",
        file="outbox/postgres/messages/message_status.sql",
        rule="(o.xid = p.position AND p.position_n > 0 AND (",
        broken="(o.xid = p.position AND p.position_n > 0 OR (",
        killer=(
            f"{PUBLICATIONS}"
            "::test_in_the_middle_of_a_commit_row_only_what_the_relay_has_passed_is_published"
        ),
    ),
    ProductMutant(
        promise="A message is found in the batch that ends at its own place",
        file="outbox/postgres/messages/message_status.sql",
        rule="AND (l.to_xid, l.to_n) >= (asked.xid, 1)",
        broken="AND (l.to_xid, l.to_n) > (asked.xid, 1)",
        killer=(
            f"{PUBLICATIONS}"
            "::test_each_message_of_each_saved_batch_has_its_own_partition_and_offset"
        ),
    ),
)

RELAY_MUTANTS: Final = (
    ProductMutant(
        promise="A commit above an open transaction waits for the lower one",
        file="outbox/postgres/relay/commit_reader.sql",
        rule="AND xid >= %(xid)s AND xid < outbox.watermark()",
        broken="AND xid >= %(xid)s",
        killer=(
            f"{RELAY}/test_commit_reader.py"
            "::test_a_commit_above_an_open_transaction_is_not_read_before_the_lower_one"
        ),
    ),
    ProductMutant(
        promise="The watermark is below every open transaction",
        file="migrations/versions/0006_plain_outbox.sql",
        rule="ELSE pg_snapshot_xmin(pg_current_snapshot())::text::bigint END",
        broken="ELSE pg_snapshot_xmax(pg_current_snapshot())::text::bigint END",
        killer=f"{RELAY}/test_commit_watch.py::test_a_commit_is_reported_only_after_it_is_final",
    ),
    ProductMutant(
        promise="An owner of an older generation moves no cursor",
        file="outbox/postgres/relay/commit_log.sql",
        rule="p.gen <= %(after_gen)s AND ",
        broken="",
        killer=f"{PROGRESS}::test_an_older_cursor_moves_nothing[older0]",
    ),
    ProductMutant(
        promise="A cursor never moves back to an older batch",
        file="outbox/postgres/relay/commit_log.sql",
        rule=" AND p.batch_no <= EXCLUDED.batch_no",
        broken="",
        killer=f"{PROGRESS}::test_an_older_cursor_moves_nothing[older1]",
    ),
    ProductMutant(
        promise="A halted shard stores no cursor",
        file="outbox/postgres/relay/commit_log.sql",
        rule="AND (p.halt_reason IS NULL OR p.halt_reason = 'replay_stuck'))",
        broken=")",
        killer=f"{PROGRESS}::test_a_halted_shard_stores_no_cursor",
    ),
    ProductMutant(
        promise="A relay that was overtaken at the first start does not halt its successor",
        file="outbox/postgres/relay/commit_log.sql",
        rule="WHERE p.manifest_offset IS NULL OR EXCLUDED.halt_reason <> 'cursor_missing'",
        broken="WHERE true",
        killer=f"{PROGRESS}::test_a_row_that_another_owner_has_just_created_is_not_missing",
    ),
    ProductMutant(
        promise="The place of each published record is stored",
        file="outbox/postgres/relay/commit_log.py",
        rule=(
            "            self._save(session, cursor, identity, begins=begins)\n"
            "            self._save_publications(session, published)\n"
        ),
        broken="            self._save(session, cursor, identity, begins=begins)\n",
        killer=(
            f"{PUBLICATIONS}"
            "::test_each_message_of_each_saved_batch_has_its_own_partition_and_offset"
        ),
    ),
    ProductMutant(
        promise="The offset of a record is stored as its offset",
        file="outbox/postgres/relay/commit_log.py",
        rule='"offsets": batch.places.offsets,',
        broken='"offsets": batch.places.partitions,',
        killer=(
            f"{PUBLICATIONS}"
            "::test_each_message_of_each_saved_batch_has_its_own_partition_and_offset"
        ),
    ),
    ProductMutant(
        promise="A record is shown as visible once consumers see its batch",
        file="outbox/postgres/messages/message_status.sql",
        rule="p.visible_batch_no IS NULL OR batch.batch_no <= p.visible_batch_no AS visible",
        broken="true AS visible",
        killer=(
            f"{PUBLICATIONS}::test_a_record_is_visible_once_the_shards_row_says_so_of_its_batch"
        ),
    ),
    ProductMutant(
        promise="A released record is shown as visible once consumers see its batch",
        file="outbox/postgres/messages/message_status.sql",
        rule="p.visible_batch_no IS NULL OR r.release_batch_no <= p.visible_batch_no",
        broken="true",
        killer=(
            f"{PUBLICATIONS}"
            "::test_a_record_that_was_held_is_visible_once_the_batch_is_that_released_it"
        ),
    ),
    ProductMutant(
        promise="A batch that is read from the middle of a row repeats nothing of it",
        file="outbox/postgres/relay/commit_reader.py",
        rule="done = {after.xid: after.n}",
        broken="done = dict[int, int]()",
        killer=f"{RELAY}/test_commit_reader.py::test_a_row_is_read_on_from_its_middle",
    ),
    ProductMutant(
        promise="No commit is passed over while its row gets a leaf",
        file="migrations/versions/0032_leaf_under_lock.sql",
        rule="IF leaf <= outbox.leaf_to_come() THEN",
        broken="IF false THEN",
        killer=(
            f"{RELAY}/test_commit_reader.py"
            "::test_a_read_that_waits_while_a_leaf_is_made_passes_none_of_its_commits_over"
        ),
    ),
    ProductMutant(
        promise="A frozen owner is replaced though only the rest of a row waits",
        file="outbox/postgres/relay/commit_log.sql",
        rule="AND xid >= coalesce(p.position, 0) AND xid < outbox.watermark()",
        broken="AND xid > coalesce(p.position, 0) AND xid < outbox.watermark()",
        killer=(
            f"{RELAY}/test_commit_reader.py"
            "::test_the_rest_of_a_row_waits_for_the_owner_and_for_who_would_replace_it"
        ),
    ),
    ProductMutant(
        promise="A repair that another relay has published meanwhile is not ordered again",
        file="outbox/postgres/relay/doubts.sql",
        rule=" AND coalesce(known.release_batch_no, 0) <= %(batch_no)s",
        broken="",
        killer=(
            f"{RELAY}/test_held_reads.py"
            "::test_a_repair_is_not_ordered_again_if_a_batch_that_was_not_read_has_released_it"
        ),
    ),
    ProductMutant(
        promise="A damaged message delays only its topic and key",
        file="outbox/postgres/relay/held_records.py",
        rule="{**begun, **scopes}",
        broken="scopes",
        killer=(
            f"{RELAY}/test_commit_reader.py"
            "::test_a_damaged_message_is_held_and_so_is_what_comes_after_it_in_its_key"
        ),
    ),
)

MESSAGE_MUTANTS: Final = (*PREPARE_MUTANTS, *DECISION_MUTANTS, *RELAY_MUTANTS)
