"""Mutants of the library's nouns: messages, checks, the relay's protocol, operators, settings."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

MESSAGES: Final = "tests/unit/outbox/messages"
CHECKS: Final = "tests/unit/outbox/checks"
PROTOCOL: Final = "tests/unit/outbox/relay/protocol"

LIBRARY_MUTANTS: Final = (
    ProductMutant(
        promise="Nothing that Maven fetched is kept unless it is locked",
        file="cli/dev/fetch.py",
        rule="            verify_artifacts(folder, lock)\n",
        broken="            pass\n",
        killer=(
            "tests/integration/devservers/test_artifact_lock.py"
            "::test_a_set_up_with_one_changed_jar_keeps_and_runs_nothing[spark]"
        ),
    ),
    ProductMutant(
        promise="A long step of a set-up shows that it still runs",
        file="cli/dev/setup_step.py",
        rule="        while not ended.wait(SILENT_SECONDS):\n",
        broken="        while not ended.wait():\n",
        killer=(
            "tests/integration/cli/dev/test_setup_step.py"
            "::test_a_long_step_shows_that_it_still_runs"
        ),
    ),
    ProductMutant(
        promise="No parameter of an address is a piece of a password that an error would quote",
        file="outbox/settings/postgres_address.py",
        rule=" or not PARAMETERS.issuperset(names)",
        broken="",
        killer=(
            "tests/unit/outbox/settings/test_postgres_address.py"
            "::test_an_address_with_a_part_that_may_be_one_of_a_password_is_refused"
            "[postgresql://u@db/outbox?password=a&b=c]"
        ),
    ),
    # -- outbox/messages --------------------------------------------------------------------------
    ProductMutant(
        promise="A content digest tells (key a, no value) from (no key, value a)",
        file="outbox/messages/content_digest.py",
        rule="presence_flag(key, value).encode(), digest)",
        broken="b'', digest)",
        killer=f"{MESSAGES}/test_content_digest.py::test_the_digest_equals_the_published_vectors",
    ),
    ProductMutant(
        promise="The SHA-256 of a content tells null from empty",
        file="outbox/messages/content_digest.py",
        rule='b"-" if field is None else b"+"',
        broken='b"+" + (0).to_bytes(8) if field is None else b"+"',
        killer=f"{MESSAGES}/test_content_digest.py::test_no_two_contents_share_a_sha256",
    ),
    ProductMutant(
        promise="A reserved header name is refused in any case of letters",
        file="outbox/messages/record.py",
        rule="    lowered = name.lower()\n    return lowered in RESERVED_NAMES",
        broken="    lowered = name\n    return lowered in RESERVED_NAMES",
        killer=f"{MESSAGES}/test_record.py::test_reserved_header_names_are_known_in_any_case",
    ),
    ProductMutant(
        promise="A header that asks for a delay is refused and not dropped",
        file="outbox/messages/record.py",
        rule="lowered in DELAY_NAMES or lowered.startswith(DELAY_PREFIX)",
        broken="lowered in DELAY_NAMES",
        killer=f"{MESSAGES}/test_record.py::test_header_names_that_ask_for_a_delay_are_known",
    ),
    ProductMutant(
        promise="Messages of one topic and key are in one shard",
        file="outbox/messages/message_id.py",
        rule="    if key is None:\n        return Shard(tiebreak % SHARDS)",
        broken="    if True:\n        return Shard(tiebreak % SHARDS)",
        killer=f"{MESSAGES}/test_message_id.py::test_equal_topic_and_key_share_a_shard",
    ),
    ProductMutant(
        promise="A text that only begins with a message id is none",
        file="outbox/messages/message_id.py",
        rule="_FORM.fullmatch(text)",
        broken="_FORM.match(text)",
        killer=f"{MESSAGES}/test_message_id.py::test_other_spellings_and_versions_are_refused",
    ),
    ProductMutant(
        promise="A manifest with a flipped bit is not read",
        file="outbox/messages/manifest.py",
        rule="if crc != crc32(memoryview(value)[: -_CRC.size]):",
        broken="if False:",
        killer=f"{MESSAGES}/test_manifest.py::test_every_single_flipped_bit_is_detected",
    ),
    ProductMutant(
        promise="What Kafka had before counts as published by its own batch alone",
        file="outbox/messages/manifest.py",
        rule="for entry in self.entries if entry.status == PUBLISHED)",
        broken="for entry in self.entries if entry.status != HELD)",
        killer=f"{MESSAGES}/test_manifest.py::test_only_the_published_entries_count_as_published",
    ),
    ProductMutant(
        promise="A held record is COMMITTED, although the relay's position has passed it",
        file="outbox/messages/state_machine.py",
        rule="if published and not held",
        broken="if published",
        killer=(
            f"{MESSAGES}/test_state_machine.py"
            "::test_a_held_record_is_committed_although_the_position_is_after_it"
        ),
    ),
    ProductMutant(
        promise="A decision that arrives while a half is parked wins",
        file="outbox/messages/state_machine.py",
        rule="    if decision is Resolution.ROLLBACK:\n        return State.ROLLED_BACK\n",
        broken=(
            "    if decision is Resolution.ROLLBACK and not parked:\n"
            "        return State.ROLLED_BACK\n"
        ),
        killer=f"{MESSAGES}/test_state_machine.py::test_a_decision_has_priority_over_parking",
    ),
    # -- outbox/checks ----------------------------------------------------------------------------
    ProductMutant(
        promise="Age parks a half under either policy and never rolls it back",
        file="outbox/checks/policy.py",
        rule="        return Park(reason=ParkedReason.MAX_AGE)",
        broken="        return RollBack()",
        killer=f"{CHECKS}/test_policy.py::test_age_parks_under_either_policy",
    ),
    ProductMutant(
        promise="The policy rolls back after valid UNKNOWN answers alone",
        file="outbox/checks/policy.py",
        rule="is OnCheckMax.ROLLBACK and row.only_unknown:",
        broken="is OnCheckMax.ROLLBACK:",
        killer=f"{CHECKS}/test_policy.py::test_after_check_max_the_groups_policy_decides",
    ),
    ProductMutant(
        promise="A half is checked at its due instant",
        file="outbox/checks/policy.py",
        rule="if now < row.due_at:",
        broken="if now <= row.due_at:",
        killer=f"{CHECKS}/test_policy.py::test_at_the_exact_due_instant_a_half_is_checked",
    ),
    ProductMutant(
        promise="Exactly check_max checks are spent before the policy decides",
        file="outbox/checks/policy.py",
        rule="if row.check_count < group.check_max:",
        broken="if row.check_count <= group.check_max:",
        killer=f"{CHECKS}/test_policy.py::test_after_check_max_the_groups_policy_decides",
    ),
    ProductMutant(
        promise="Silence spends no check",
        file="outbox/checks/check_round.py",
        rule="return self.outcome in (Outcome.UNKNOWN, Outcome.BAD_VERDICT)",
        broken="return self.outcome in (Outcome.UNKNOWN, Outcome.BAD_VERDICT, Outcome.TIMEOUT)",
        killer="tests/unit/outbox/http_checks/test_classification.py::test_silence_spends_nothing",
    ),
    ProductMutant(
        promise="An overloaded endpoint spends no check",
        file="outbox/checks/check_round.py",
        rule="frozenset({GONE, 429, 502, 503, 504})",
        broken="frozenset({GONE, 429, 502, 504})",
        killer=(
            "tests/unit/outbox/http_checks/test_classification.py"
            "::test_an_overloaded_or_gone_endpoint_spends_nothing"
        ),
    ),
    ProductMutant(
        promise="An endpoint may delay the next check and never hasten it",
        file="outbox/checks/delays.py",
        rule="max(int(interval.total_seconds()), retry_after_seconds or 0)",
        broken="retry_after_seconds or int(interval.total_seconds())",
        killer=f"{CHECKS}/test_delays.py::test_an_endpoint_can_delay_a_check_but_not_hasten_it",
    ),
    ProductMutant(
        promise="A probe without a result does not close an open breaker",
        file="outbox/checks/breaker.py",
        rule="        return BreakerChange(wait_seconds=breaker.wait_seconds)",
        broken="        return BreakerChange(wait_seconds=None)",
        killer=f"{CHECKS}/test_breaker.py::test_a_probe_without_a_result_keeps_the_wait",
    ),
    ProductMutant(
        promise="No spelling of a metadata address is reached, also inside NAT64",
        file="outbox/checks/embedded_addresses.py",
        rule="for each in (*nat64, NAT64) if address in each",
        broken="for each in nat64 if address in each",
        killer=f"{CHECKS}/test_ssrf_guard.py::test_a_spelling_of_an_inner_address_is_refused",
    ),
    ProductMutant(
        promise="A check never goes to one of the service's own listeners",
        file="outbox/checks/ssrf_guard.py",
        rule="        (own, Rule.OWN_LISTENER),\n",
        broken="",
        killer=(
            f"{CHECKS}/test_ssrf_guard.py"
            "::test_our_own_listeners_are_refused_inside_allowed_networks"
        ),
    ),
    ProductMutant(
        promise="A URL with user information, which parsers read differently, is refused",
        file="outbox/checks/ssrf_guard.py",
        rule='        ("@" in shape["authority"], Rule.USER_INFO),\n',
        broken="",
        killer=f"{CHECKS}/test_ssrf_guard.py::test_a_url_of_another_shape_is_refused",
    ),
    # -- outbox/relay -----------------------------------------------------------------------------
    ProductMutant(
        promise="A batch with one report too few is not committed",
        file="outbox/relay/protocol/publication.py",
        rule="if delivered.good != len(batch.published):",
        broken="if False:",
        killer=f"{PROTOCOL}/test_publication.py::test_a_report_too_few_drops_the_handle",
    ),
    ProductMutant(
        promise="A slow commit is in doubt whatever it returned",
        file="outbox/relay/protocol/publication.py",
        rule="if ended.seconds >= CLEAN_COMMIT_SECONDS:",
        broken="if False:",
        killer=(
            f"{PROTOCOL}/test_publication.py"
            "::test_a_slow_commit_drops_the_handle_whatever_it_returned"
        ),
    ),
    ProductMutant(
        promise="A message that Kafka has already is listed and not published again",
        file="outbox/relay/protocol/publication.py",
        rule="        return PUBLISHED_BEFORE\n",
        broken="        return PUBLISHED\n",
        killer=(
            f"{PROTOCOL}/test_publication.py"
            "::test_a_batch_lists_messages_that_kafka_already_has_and_does_not_repeat_them"
        ),
    ),
    ProductMutant(
        promise="A manifest with an offset of another log is not committed",
        file="outbox/relay/protocol/publication.py",
        rule="if delivered.offset < cursor.manifest_offset:",
        broken="if False:",
        killer=(
            f"{PROTOCOL}/test_publication.py"
            "::test_a_manifest_without_a_credible_offset_is_not_committed"
        ),
    ),
    ProductMutant(
        promise="A batch continues the chain of its shard",
        file="outbox/relay/protocol/manifest_chain.py",
        rule="prev_crc=cursor.crc,",
        broken="prev_crc=0,",
        killer=f"{PROTOCOL}/test_publication.py::test_a_batch_continues_the_chain",
    ),
    ProductMutant(
        promise="A relay halts before any fence when the cluster is another one",
        file="outbox/relay/protocol/takeover.py",
        rule="    if before.cluster_id != now.cluster_id:\n",
        broken="    if False:\n",
        killer=f"{PROTOCOL}/test_step.py::test_a_changed_store_halts_before_anyone_is_fenced",
    ),
    ProductMutant(
        promise="A halt is kept until somebody resolves it",
        file="outbox/relay/protocol/takeover.py",
        rule="if stored is not None and stored is not HaltReason.REPLAY_STUCK:",
        broken="if False:",
        killer=f"{PROTOCOL}/test_step.py::test_a_stored_halt_is_kept_until_somebody_resolves_it",
    ),
    ProductMutant(
        promise="An owner that gives signs of life keeps its shard",
        file="outbox/relay/protocol/takeover.py",
        rule="or watch.signs != busy.signs:",
        broken="or False:",
        killer=f"{PROTOCOL}/test_step.py::test_an_owner_that_is_not_stuck_keeps_its_session",
    ),
    ProductMutant(
        promise="A broken chain of manifests halts",
        file="outbox/relay/protocol/replay.py",
        rule="and manifest.prev_crc == cursor.crc",
        broken="and True",
        killer=f"{PROTOCOL}/test_step.py::test_a_broken_chain_halts",
    ),
    ProductMutant(
        promise="A manifest moves the position only if PostgreSQL holds its range",
        file="outbox/relay/protocol/replay.py",
        rule="and compared.message_ids == (ids if is_batch else ())",
        broken="and True",
        killer=(
            f"{PROTOCOL}/test_step.py"
            "::test_a_manifest_that_differs_is_history_and_the_position_stays"
        ),
    ),
    ProductMutant(
        promise="What must wait is stored as held before the batch that lists it",
        file="outbox/relay/protocol/publication.py",
        rule="holding = (HoldRecords(batch, held, None),) if held else ()",
        broken="holding = ()",
        killer=(
            f"{PROTOCOL}/test_record_hold.py"
            "::test_what_must_wait_is_stored_before_the_batch_that_lists_it"
        ),
    ),
    ProductMutant(
        promise="A release does not publish again what Kafka has",
        file="outbox/relay/protocol/record_hold.py",
        rule="PUBLISHED_BEFORE if message_id in read.before else PUBLISHED)",
        broken="PUBLISHED)",
        killer=(
            f"{PROTOCOL}/test_record_hold.py"
            "::test_a_release_has_an_empty_range_and_publishes_nothing_that_kafka_has"
        ),
    ),
    ProductMutant(
        promise="No server setting that voids the guarantees passes unseen",
        file="outbox/relay/server_requirements.py",
        rule='Judgement(VERIFICATION, partition_verification != "false",',
        broken="Judgement(VERIFICATION, True,",
        killer=(
            "tests/unit/outbox/relay/test_server_requirements.py"
            "::test_each_unsafe_fact_of_a_cluster_is_refused_by_name"
        ),
    ),
    # -- outbox/settings, outbox/failpoints -------------------------------------------------------
    ProductMutant(
        promise="An unknown setting is refused and not ignored",
        file="outbox/settings/environment.py",
        rule='raise ConfigurationError(f"{key}: no such setting; {_instead_of(name, PREFIX)}")',
        broken='return "check_max", "3"',
        killer="tests/unit/outbox/test_settings.py::test_a_wrong_setting_is_one_line_that_names_it",
    ),
    ProductMutant(
        promise="A wrong value of a flag is refused in the name of the flag",
        file="outbox/settings/environment.py",
        rule="    for setting, flag in flags.items():",
        broken="    for setting, flag in ():",
        killer="tests/unit/api/test_bind.py::test_an_invalid_setting_is_one_line_and_exit_2",
    ),
)
