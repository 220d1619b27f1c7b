"""Mutants of the client for producers and of the command."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

CLIENT: Final = "tests/unit/outbox_client"
SENDING: Final = "tests/integration/client/test_send_in_transaction.py"
BARRIER: Final = "tests/integration/client/barrier/test_barrier.py"

CLIENT_MUTANTS: Final = (
    ProductMutant(
        promise="psycopg: what is read before the fence proves nothing",
        file="outbox_client/psycopg.py",
        rule=(
            "            if not self._fence(connection, ids):\n"
            "                return LocalTransactionState.UNKNOWN\n"
            "            outcome, purged_before = _read(connection, ids)\n"
        ),
        broken=(
            "            outcome, purged_before = _read(connection, ids)\n"
            "            if not self._fence(connection, ids):\n"
            "                return LocalTransactionState.UNKNOWN\n"
            "            outcome = outcome or barrier.FENCED\n"
        ),
        killer=(
            f"{BARRIER}"
            "::test_a_check_that_waited_for_the_local_transaction_answers_what_it_committed"
        ),
    ),
    ProductMutant(
        promise="SQLAlchemy: what is read before the fence proves nothing",
        file="outbox_client/sqlalchemy.py",
        rule=(
            "        if not self._fence(db, check):\n"
            "            return LocalTransactionState.UNKNOWN\n"
        ),
        broken=(
            "        with db.begin() as connection:\n"
            "            ids = check.producer_group, check.message_id\n"
            '            if connection.scalar(_cell("outcome", *ids)) is None:\n'
            "                self._fence(db, check)\n"
            "                return LocalTransactionState.ROLLBACK\n"
        ),
        killer=(
            f"{BARRIER}"
            "::test_a_check_that_waited_for_the_local_transaction_answers_what_it_committed"
        ),
    ),
    ProductMutant(
        promise="A fence that a purge may have preceded is no proof",
        file="outbox_client/barrier.py",
        rule="if purged_before is not None and prepared_at < purged_before + CLOCK_MARGIN:",
        broken="if False:",
        killer=f"{CLIENT}/test_barrier.py::test_the_stored_row_is_the_answer",
    ),
    ProductMutant(
        promise="After the fence the local transaction cannot commit",
        file="outbox_client/psycopg.py",
        rule='VALUES (%s, %s, \'committed\', clock_timestamp())"""',
        broken='VALUES (%s, %s, \'committed\', clock_timestamp()) ON CONFLICT DO NOTHING"""',
        killer=f"{BARRIER}::test_after_the_fence_the_local_transaction_cannot_commit[psycopg]",
    ),
    ProductMutant(
        promise="An exception of the listener means UNKNOWN",
        file="outbox_client/checks/verdicts.py",
        rule='return Verdict(UNKNOWN, f"the listener raised {type(error).__name__}")',
        broken="return Verdict(LocalTransactionState.ROLLBACK)",
        killer=(
            f"{CLIENT}/checks/test_endpoint.py"
            "::test_an_exception_of_the_listener_means_unknown_without_details"
        ),
    ),
    ProductMutant(
        promise="A listener that returns nothing has decided nothing",
        file="outbox_client/checks/verdicts.py",
        rule="    if returned is None:\n        return Verdict(UNKNOWN)\n",
        broken=(
            "    if returned is None:\n        return Verdict(LocalTransactionState.ROLLBACK)\n"
        ),
        killer=(
            f"{CLIENT}/checks/test_endpoint.py"
            "::test_an_invalid_value_from_the_listener_means_unknown"
        ),
    ),
    ProductMutant(
        promise="A check without a valid signature is not answered",
        file="outbox_client/checks/signature.py",
        rule="        if not any(_verifies(",
        broken="        if False and any(_verifies(",
        killer=(
            f"{CLIENT}/checks/test_endpoint.py"
            "::test_a_bad_signature_is_401_and_the_listener_is_not_called"
        ),
    ),
    ProductMutant(
        promise="A failed prepare never runs the local transaction",
        file="outbox_client/client.py",
        rule="        prepared = self._take(self._calls.prepare_first(message, wait))\n",
        broken=(
            "        run(message)\n"
            "        prepared = self._take(self._calls.prepare_first(message, wait))\n"
        ),
        killer=f"{SENDING}::test_a_failed_prepare_never_runs_the_local_transaction",
    ),
    ProductMutant(
        promise="An exception of the local transaction ends with UNKNOWN",
        file="outbox_client/calls/producer_calls.py",
        rule="shared_end(Ending(prepared.message_id, UNKNOWN))",
        broken="shared_end(Ending(prepared.message_id, LocalTransactionState.ROLLBACK))",
        killer=f"{SENDING}::test_an_exception_ends_with_unknown_and_propagates_unchanged",
    ),
    ProductMutant(
        promise="An error that is not retryable is not retried",
        file="outbox_client/calls/retry.py",
        rule="        if not error.retryable:\n",
        broken="        if False:\n",
        killer=f"{CLIENT}/calls/test_retry.py::test_an_error_that_is_not_retryable_is_not_retried",
    ),
    ProductMutant(
        promise="A group test fails when the endpoint accepts forged checks",
        file="cli/commands/group.py",
        rule="    if faults:\n        raise CommandFailed(",
        broken='    if faults != ["accepts forged checks"]:\n        raise CommandFailed(',
        killer=(
            "tests/unit/cli/commands/test_group.py"
            "::test_a_probe_of_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails"
        ),
    ),
    ProductMutant(
        promise="The doctor finds an endpoint that accepts forged checks",
        file="cli/commands/doctor/endpoint_checks.py",
        rule='    "forgery_refused": "accepts forged checks",\n',
        broken="",
        killer=(
            "tests/unit/cli/commands/doctor/test_endpoint_checks.py"
            "::test_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails"
        ),
    ),
    ProductMutant(
        promise="A key for a group to come names the command that registers it",
        file="cli/commands/key.py",
        rule="        return problem.exit_code is ExitCode.NOT_FOUND\n",
        broken="        return False\n",
        killer=(
            "tests/unit/cli/commands/test_key.py"
            "::test_a_key_for_a_group_that_is_not_registered_names_the_next_command[billing-404]"
        ),
    ),
    ProductMutant(
        promise="A list without rows says so",
        file="cli/invocation/output.py",
        rule="        invocation.say(none)\n",
        broken="        pass\n",
        killer=(
            "tests/unit/cli/test_app.py"
            "::test_a_list_without_rows_says_so_and_its_data_stays_empty"
            "[reconcile list-outbox reconcile run]"
        ),
    ),
    ProductMutant(
        promise="A missing message is exit code 3",
        file="cli/service/api_problem.py",
        rule="404: ExitCode.NOT_FOUND",
        broken="404: ExitCode.ERROR",
        killer=(
            "tests/unit/cli/invocation/test_exit_codes.py::test_a_problem_status_has_an_exit_code"
        ),
    ),
    ProductMutant(
        promise="A secret is never shown",
        file="outbox/operators/shown_settings.py",
        rule="    if name in SECRETS or isinstance(value, SecretStr):\n",
        broken=(
            "    if isinstance(value, SecretStr):\n"
            "        return value.get_secret_value()\n"
            "    if name in SECRETS:\n"
        ),
        killer="tests/unit/cli/invocation/test_exit_codes.py::test_secrets_are_not_shown",
    ),
    ProductMutant(
        promise="An answer for another message runs no local transaction",
        file="outbox_client/calls/protocol.py",
        rule='if _text_or_none(members, "transaction_id") != message.transaction_id:',
        broken="if False:",
        killer="tests/integration/client/test_send_in_transaction.py"
        "::test_an_answer_for_another_message_runs_no_local_transaction",
    ),
    ProductMutant(
        promise="An answer that drips is given up in time",
        file="outbox_client/calls/time_limit.py",
        rule="self.ends_at = monotonic() + seconds",
        broken='self.ends_at = float("inf")',
        killer=(
            "tests/integration/client/calls/test_endless_answers.py"
            "::test_an_answer_that_drips_is_given_up_in_time[threads-interim answers]"
        ),
    ),
    ProductMutant(
        promise="A compressed answer is not unpacked",
        file="outbox_client/calls/transport.py",
        rule="            for chunk in response.iter_stream():\n",
        broken='            for chunk in [__import__("gzip").decompress(response.read())]:\n',
        killer=(
            "tests/integration/client/calls/test_endless_answers.py"
            "::test_a_compressed_answer_is_not_unpacked[threads]"
        ),
    ),
)
