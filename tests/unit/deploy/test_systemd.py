"""The units are read by systemd without a complaint, and run our programs with our settings."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from api.__main__ import GRACE_SECONDS
from outbox.settings.catalogue import SECRETS, Settings
from outbox.settings.environment import load_settings
from spark.__main__ import _parser
from tests.fixtures_paths import PROJECT

FOLDER: Final = PROJECT / "deploy/systemd"
UNITS: Final = sorted(path for path in FOLDER.iterdir() if path.suffix in (".service", ".timer"))
SERVICES: Final = [path for path in UNITS if path.suffix == ".service"]
PROGRAMS: Final = Path(sys.executable).parent
PREFIX: Final = "/opt/outbox/bin"
ANALYZE: Final = shutil.which("systemd-analyze")
SECRETS_OF: Final = {
    "outbox-migrate": {"owner_database_url"},
    "outbox-api": {"api_database_url", "auth_pepper", "encryption_keys"},
    "outbox-checker": {"checker_database_url", "encryption_keys"},
    "outbox-reconcile": {"reconcile_database_url"},
}

OPEN: Final = {
    *("RestrictAddressFamilies_AF_INET_INET6", "RestrictAddressFamilies_AF_UNIX"),
    *("PrivateNetwork", "IPAddressDeny"),  # both stores and the endpoints are in the network
    "MemoryDenyWriteExecute",  # the JVM of an audit compiles
    *("RootDirectoryOrRootImage", "PrivateUsers", "PrivateMounts", "ProtectProc", "ProcSubset"),
    "DeviceAllow",  # ProtectClock lets a unit read the clock's device
}
"""What systemd says against a unit and we accept, beside the system calls, which are not chosen."""


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the units, which start the programs of this environment."""
    folder = tmp_path_factory.mktemp("units")
    for path in UNITS:
        (folder / path.name).write_text(path.read_text().replace(PREFIX, str(PROGRAMS)))
    return folder


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_reads_every_unit_without_a_complaint(units: Path) -> None:
    assert verified(units) == ""


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_a_directive_that_systemd_does_not_know_is_a_complaint(units: Path, tmp_path: Path) -> None:
    for path in units.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("TasksMax=", "TaskMax="))
    assert "TaskMax" in verified(tmp_path)


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_systemd_finds_a_unit_open_only_where_the_program_needs_it(path: Path) -> None:
    done = subprocess.run(
        [str(ANALYZE), "security", "--offline=true", "--json=short", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = {each["json_field"] for each in json.loads(done.stdout) if not each["set"]}
    assert {each for each in found if not each.startswith("SystemCallFilter_")} <= OPEN


def verified(folder: Path) -> str:
    """Return what systemd says about the units of a folder."""
    assert ANALYZE is not None
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", "--recursive-errors=no", *sorted(folder.iterdir())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"SYSTEMD_UNIT_PATH": f"{folder}:", "PATH": "/usr/bin:/bin"},
    )
    return done.stderr


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_unit_starts_a_program_that_is_installed(path: Path) -> None:
    (words,) = re.findall(r"^ExecStart=(.*)$", path.read_text(), re.M)
    program, *arguments = words.split()
    assert Path(program.replace(PREFIX, str(PROGRAMS))).is_file()
    if program.endswith("reconcile"):
        assert _parser().parse_args(arguments).command == "run"


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_unit_hands_each_program_its_own_secrets_as_files(path: Path) -> None:
    text = path.read_text()
    loaded = dict(re.findall(r"^LoadCredential=(\w+):/etc/outbox/secrets/(\w+)$", text, re.M))
    settings = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.M))
    files = {name: value for name, value in settings.items() if name.endswith("_FILE")}
    assert set(loaded.values()) == SECRETS_OF[path.stem]
    assert {value.removeprefix("%d/") for value in files.values()} == set(loaded)
    known = {f"OUTBOX_{field.upper()}" for field in Settings.model_fields}
    assert {name.removesuffix("_FILE") for name in settings} <= known
    assert not settings.keys() & {f"OUTBOX_{each.upper()}" for each in SECRETS}


def test_programs_start_though_the_database_was_away_at_boot_and_the_migration_is_tried_again() -> (
    None
):
    """A unit that requires another one is not started any more once that one has failed."""
    for path in SERVICES:
        assert not re.search(r"^(Requires|BindsTo|Requisite)=", path.read_text(), re.M), path.name
    for name in ("outbox-api", "outbox-checker"):
        text = (FOLDER / f"{name}.service").read_text()
        assert re.search(r"^Wants=.*outbox-migrate\.service", text, re.M)
        assert re.search(r"^After=.*outbox-migrate\.service", text, re.M)
    migrate = (FOLDER / "outbox-migrate.service").read_text()
    assert re.search(r"^Restart=on-failure$", migrate, re.M)
    assert re.search(r"^StartLimitIntervalSec=0$", migrate, re.M)


def test_the_shared_settings_can_be_read() -> None:
    lines = (FOLDER / "outbox.env").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert load_settings(pairs).http_bind == "127.0.0.1:8080"


def test_a_stop_leaves_the_api_the_time_that_it_may_take() -> None:
    text = (FOLDER / "outbox-api.service").read_text()
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.M)
    assert int(seconds) > GRACE_SECONDS


def test_a_command_by_hand_has_the_settings_of_the_units_and_one_login(tmp_path: Path) -> None:
    """The script calls systemd, for which a program stands that prints its words."""
    text = (FOLDER / "outbox-as").read_text().replace("/etc/outbox/secrets", str(tmp_path))
    (tmp_path / "checker_database_url").write_text("url")
    (tmp_path / "systemd-run").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "systemd-run").chmod(0o755)
    words = ["sh", "-c", text, "outbox-as", "checker", "shard", "resolve", "3", "--reason", "a b"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(words, env=path, capture_output=True, text=True, check=True)
    *options, program, command, verb, shard, flag, reason = done.stdout.splitlines()
    assert "--property=EnvironmentFile=/etc/outbox/outbox.env" in options
    login = f"--setenv=OUTBOX_DATABASE_URL_FILE={tmp_path}/checker_database_url"
    assert [each for each in options if each.startswith("--setenv=")] == [login]
    assert program == f"{PREFIX}/outbox"
    assert (command, verb, shard, flag, reason) == ("shard", "resolve", "3", "--reason", "a b")
    words[4] = "nobody"
    refused = subprocess.run(words, env=path, capture_output=True, text=True, check=False)
    assert (refused.returncode, "nobody_database_url" in refused.stderr) == (2, True)


def test_the_page_installs_files_that_there_are_and_names_every_secret() -> None:
    """tests/e2e/pages/test_systemd_page.py types its commands."""
    page = (PROJECT / "docs/containers.md").read_text("utf-8")
    (section,) = re.findall(r"^## systemd\n(.*?)(?=^## )", page, re.M | re.S)
    install, *_ = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    named = re.findall(r"(?:deploy|requirements)/\S+", install)
    assert [each for each in named if not list(PROJECT.glob(each))] == []
    installed = {found.name for each in named for found in PROJECT.glob(each)}
    assert installed >= {path.name for path in FOLDER.iterdir()}
    secrets = set(re.findall(r"`(\w+_database_url|auth_pepper|encryption_keys)`", section))
    assert secrets == set().union(*SECRETS_OF.values())
