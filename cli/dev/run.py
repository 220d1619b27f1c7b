"""One run of `outbox dev`, from the lock to the clean stop."""

import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from time import monotonic
from typing import NoReturn

from cli.dev.data_dir import open_data_dir
from cli.dev.signals import StopRequested, signals_as_exceptions
from cli.dev.stack import DevOptions, Stack
from cli.dev.supervisor import Supervisor
from cli.invocation.dev_state import DevState, remove_state, write_state
from cli.invocation.exit_codes import ExitCode
from outbox.telemetry.version import installed_version

Say = Callable[[str], None]
Announce = Callable[[DevState], None]


def run_dev(
    options: DevOptions,
    inherited: Mapping[str, str],
    *,
    fresh: bool,
    say: Say,
    announce: Announce,
) -> ExitCode:
    """Run until a signal; return the exit code.

    Raises CommandFailed if another run has the data directory, EmbeddedError or OutboxError if
    something cannot start.
    """
    try:
        with signals_as_exceptions(), closing(open_data_dir(options.data_dir)) as data_dir:
            if fresh:
                Stack(options, data_dir, inherited).erase()
            stack = Stack(options, data_dir, inherited)
            _run(stack, say, announce)
    except StopRequested as request:
        return ExitCode.INTERRUPTED if request.signal == signal.SIGINT else ExitCode.OK


def _run(stack: Stack, say: Say, announce: Announce) -> NoReturn:
    remove_state(stack.data_dir.path)
    try:
        _start(stack, _timed(say))
        supervisor = Supervisor(stack.services, changed=lambda: _publish(stack), say=say)
        announce(_publish(stack))
        supervisor.watch()
    finally:
        remove_state(stack.data_dir.path)
        stack.stop()


def _start(stack: Stack, say: Say) -> None:
    stack.start_servers(say)
    stack.make_api_key()
    stack.start_programs()
    stack.wait_kafka()
    say("Kafka is ready")
    stack.wait_ready()
    say(f"the API is ready; its console: {stack.api_url}/ui/")


def _publish(stack: Stack) -> DevState:
    state = DevState(
        api_url=stack.api_url,
        kafka_bootstrap_servers=stack.kafka.bootstrap_servers,
        database_url=stack.database_url,
        pids={name: each.pid for name, each in stack.services.items() if each.pid is not None},
        api_key=stack.api_key,
        version=installed_version(),
    )
    write_state(stack.data_dir.path, state)
    return state


def _timed(say: Say) -> Say:
    began = monotonic()
    return lambda line: say(f"{monotonic() - began:5.1f} s  {line}")
