"""The folder of `outbox dev`: its lock, ports, secrets and dev.json."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from cli.dev.data_dir import open_data_dir
from cli.dev.environment import program_environment
from cli.invocation.dev_state import remove_state, running_state, write_state
from cli.invocation.exit_codes import CommandFailed, ExitCode
from outbox.errors import ConfigurationError
from tests.integration.cli.dev.fixtures_dev_folder import STATE

NEVER_A_PID = 2**22 + 1


def test_a_folder_has_one_holder_at_a_time(tmp_path: Path) -> None:
    held = open_data_dir(tmp_path / "data")
    with pytest.raises(CommandFailed, match=f"process {os.getpid()}") as refusal:
        open_data_dir(tmp_path / "data")
    assert refusal.value.exit_code is ExitCode.CONFLICT
    held.close()
    open_data_dir(tmp_path / "data").close()


def test_a_folder_keeps_its_ports_while_they_are_free(tmp_path: Path) -> None:
    held = open_data_dir(tmp_path / "data")
    first = held.ports({})
    assert len(set(first.values())) == len(first)
    assert held.ports({}) == first
    with socket.create_server(("127.0.0.1", first["kafka"])):
        moved = held.ports({})
    assert moved["kafka"] != first["kafka"]
    assert {**moved, "kafka": first["kafka"]} == first
    held.close()


def test_a_folder_with_files_of_the_user_is_not_erased(tmp_path: Path) -> None:
    """Such as the home, or the folder in which the command was started."""
    held = open_data_dir(tmp_path / "data")
    (held.path / "thesis.txt").touch()
    (held.path / "kafka").mkdir()
    with pytest.raises(CommandFailed, match=r"thesis\.txt.*deletes nothing") as refusal:
        held.erase()
    assert refusal.value.exit_code is ExitCode.USAGE
    assert (held.path / "kafka").exists()
    (held.path / "thesis.txt").unlink()
    held.erase()
    assert [each.name for each in held.path.iterdir()] == ["lock"]
    held.close()


def test_a_given_port_wins_and_one_that_is_taken_is_refused(tmp_path: Path) -> None:
    held = open_data_dir(tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandFailed, match=str(port)):
            held.ports({"api": port})
    assert held.ports({"api": port})["api"] == port
    held.close()


def test_secrets_are_created_once_private_and_deleted_with_the_data(tmp_path: Path) -> None:
    held = open_data_dir(tmp_path / "data")
    secret = held.secret("auth_pepper")
    assert held.secret("auth_pepper") == secret
    assert (tmp_path / "data" / "auth_pepper.secret").stat().st_mode & 0o777 == 0o600
    held.erase()
    assert held.secret("auth_pepper") != secret
    held.close()


def test_the_state_is_found_while_its_processes_run(tmp_path: Path) -> None:
    write_state(tmp_path, STATE)
    assert (tmp_path / "dev.json").stat().st_mode & 0o777 == 0o600
    assert running_state(tmp_path) == STATE
    remove_state(tmp_path)
    assert running_state(tmp_path) is None
    remove_state(tmp_path)


def test_a_stale_or_broken_state_is_no_state(tmp_path: Path) -> None:
    dead = replace(STATE, pids={"api": NEVER_A_PID})
    write_state(tmp_path, dead)
    assert running_state(tmp_path) is None
    (tmp_path / "dev.json").write_text("{")
    assert running_state(tmp_path) is None


@pytest.mark.parametrize("pid", [1, "2"])
def test_a_state_without_a_process_of_its_own_is_no_state(tmp_path: Path, pid: object) -> None:
    write_state(tmp_path, replace(STATE, pids={"api": pid}))  # type: ignore[dict-item]
    assert running_state(tmp_path) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"api_url": "http://evil.example:8080"},
        {"api_url": "http://localhost.evil.example"},
        {"database_url": "postgresql://127.0.0.1:5432@evil.example/outbox"},
        {"database_url": "postgresql://127.0.0.1:5432/outbox?host=evil.example"},
        {"kafka_bootstrap_servers": "127.0.0.1:9092,evil.example:9092"},
    ],
    ids=str,
)
def test_a_state_that_names_another_machine_is_refused(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    write_state(tmp_path, replace(STATE, **fields))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="another machine"):
        running_state(tmp_path)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_state_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    write_state(tmp_path, STATE)
    (tmp_path / "dev.json").chmod(mode)
    with pytest.raises(ConfigurationError, match="others can write it"):
        running_state(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_state_or_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path, STATE)
    os.chown(tmp_path / "dev.json", 12_345, -1)
    with pytest.raises(ConfigurationError, match="does not belong to you"):
        running_state(tmp_path)
    os.chown(tmp_path, 12_345, -1)
    with pytest.raises(CommandFailed, match="another user"):
        open_data_dir(tmp_path)


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o777)
    with pytest.raises(CommandFailed, match="chmod go-w"):
        open_data_dir(tmp_path / "data")


def test_programs_get_the_callers_settings_but_not_its_addresses(tmp_path: Path) -> None:
    held = open_data_dir(tmp_path / "data")
    environment = program_environment(
        {
            "PATH": "/bin",
            "OUTBOX_CHECK_MAX": "3",
            "OUTBOX_CREATE_TOPICS": "false",
            "OUTBOX_DATABASE_URL_FILE": "/run/secrets/url",
            "OUTBOX_HTTP_BIND": "0.0.0.0:80",
        },
        held,
        database_url="postgresql://here",
        bootstrap_servers="127.0.0.1:9092",
        ports={"api": 8080, "checker_metrics": 9464},
        auth="keys",
    )
    held.close()
    assert environment["OUTBOX_CHECK_MAX"] == "3"
    assert environment["OUTBOX_CREATE_TOPICS"] == "false"
    assert environment["OUTBOX_CHECK_ALLOW_CIDRS"] == "127.0.0.0/8,::1/128"
    assert environment["OUTBOX_DATABASE_URL"] == "postgresql://here"
    assert environment["OUTBOX_HTTP_BIND"] == "127.0.0.1:8080"
    assert "OUTBOX_DATABASE_URL_FILE" not in environment
