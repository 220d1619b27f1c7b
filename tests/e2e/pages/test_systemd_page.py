"""Every line of docs/containers.md about systemd, typed in its order, on real stores.

A folder stands for the root of the machine, see `fixtures_systemd.py`. Two lines are left out:
the last sentences (audits, upgrade) have no block, and packages are installed only where
TEST_INSTALLS is set.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from devservers.kafka import EmbeddedKafka
from devservers.ports import free_ports
from devservers.postgres import EmbeddedPostgres
from outbox.settings.environment import process_environment
from tests.e2e.pages.fixtures_systemd import SYSTEMCTL, below
from tests.fixtures_databases import drop_database, let_roles_log_in, make_database
from tests.fixtures_paths import PROJECT
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.postgres,
    pytest.mark.kafka,
    pytest.mark.deep,
    pytest.mark.skipif(not Path(SYSTEMCTL).is_file(), reason="systemd is not installed"),
    pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed"),
]

PAGE = (PROJECT / "docs/containers.md").read_text("utf-8")
(SECTION,) = re.findall(r"^## systemd\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
INSTALL, SECRETS, MIGRATE, START = re.findall(r"^```sh\n(.*?)^```", SECTION, re.M | re.S)
PACKAGES = re.compile(r"^(?:python3 -m venv|/opt/outbox/bin/pip) .*\n", re.MULTILINE)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that stands for the root of a machine; end what was started on it."""
    for place in ("etc/systemd/system", "usr/local/sbin", "opt", "tools"):
        (tmp_path / place).mkdir(parents=True)
    for name in ("systemctl", "systemd-run"):
        tool = tmp_path / "tools" / name
        tool.write_text(
            f"#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable}"
            f' -m tests.e2e.pages.fixtures_systemd {name} {tmp_path} "$@"\n'
        )
        tool.chmod(0o755)
    yield tmp_path
    started = tmp_path / "started"
    for pid in started.read_text().split() if started.is_file() else []:
        os.kill(int(pid), signal.SIGTERM)


@pytest.fixture(scope="module")
def broker(servers_dir: Path) -> Iterator[EmbeddedKafka]:
    """A broker without the manifests of another installation."""
    broker = EmbeddedKafka(servers_dir / "kafka-of-systemd")
    broker.start()
    yield broker
    broker.stop()
    broker.erase()


@pytest.fixture
def owner(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """Yield the URL of an empty database; afterwards other tests may log in again."""
    url = make_database(postgres_server.database_url, None)
    yield url
    drop_database(postgres_server.database_url, url)
    let_roles_log_in(postgres_server.database_url)


def typed(block: str, machine: Path, **names: str) -> str:
    """Type a block of the page as root of the machine; return what it prints."""
    path = f"{machine}/tools:{machine}/usr/local/sbin:{process_environment()['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", below(machine, block)],
        cwd=PROJECT,
        env={**process_environment(), **names, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(machine: Path) -> None:
    """Type the first block; without TEST_INSTALLS the programs are those of this environment."""
    block = INSTALL
    if "TEST_INSTALLS" not in process_environment():
        assert len(PACKAGES.findall(block)) == 4
        (machine / "opt/outbox").symlink_to(PROJECT / ".venv")
        block = PACKAGES.sub("", block)
    typed(block, machine)
    command = machine / "usr/local/sbin/outbox-as"
    command.write_text(below(machine, command.read_text()))


def edit_settings(machine: Path, brokers: str, port: int) -> None:
    """Edit the settings as the page says."""
    file = machine / "etc/outbox/outbox.env"
    text = re.sub(r"kafka-1:9092\S*", brokers, file.read_text())
    file.write_text(text.replace(":8080", f":{port}"))


def test_the_page_is_a_session_that_works(machine: Path, owner: str, broker: EmbeddedKafka) -> None:
    (port,) = free_ports(1)
    install(machine)
    edit_settings(machine, broker.bootstrap_servers, port)
    typed(SECRETS, machine, OWNER=owner)
    assert (machine / "etc/outbox/secrets").stat().st_mode & 0o777 == 0o700
    typed(MIGRATE, machine)
    programs, create, doctor = START.splitlines()
    typed(programs, machine)
    wanted = machine / "etc/systemd/system/multi-user.target.wants"
    assert {path.name for path in wanted.iterdir()} == {
        "outbox-api.service",
        "outbox-checker.service",
    }
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: is_ready(url))
    created = json.loads(typed(create, machine))
    asked = {"authorization": f"Bearer {created['api_key']}"}
    answer = httpx2.get(f"{url}/v1/api-keys", headers=asked, trust_env=False, verify=NO_TLS)
    assert answer.status_code == 200
    assert '"fail"' not in typed(doctor, machine)
    with psycopg.connect(owner) as session:
        found = session.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database()"
        )
        users = {user for (user,) in found}
    assert users == {"outbox_api", "outbox_checker", urlsplit(owner).username}


def is_ready(url: str) -> bool:
    """True if the API says so."""
    try:
        answer = httpx2.get(f"{url}/readyz", trust_env=False, verify=NO_TLS)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200
