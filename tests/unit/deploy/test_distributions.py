"""The service's wheel holds only what production runs; the crash harness is a wheel of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zipfile import ZipFile

import pytest
import typer

from cli import app
from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.unit.deploy.fixtures_wheel import build_wheel

HARNESS = "chaos"
CLIENT = "outbox_client"
CLIENT_PROGRAM = """
from outbox_client import CheckEndpoint, LocalTransactionState, PrepareFailed, Message
from outbox_client import TransactionProducer
from outbox_client.wsgi import check_app

class Listener:
    def check_local_transaction(self, check):
        return LocalTransactionState.UNKNOWN

secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
with CheckEndpoint("billing", secret, Listener()) as e:
    refused = e.handle({}, b"{}").status == 401
with TransactionProducer("http://127.0.0.1:9", "billing", timeout=0.2) as producer:
    try:
        producer.send_in_transaction(Message("t", "v"), lambda prepared: 1 / 0)
    except PrepareFailed:
        print(refused, True, end="")
"""
DEVELOPMENT = {HARNESS, "tests", "benchmarks", "examples"}


def modules_of(wheel: ZipFile) -> set[str]:
    """Return the Python modules of a wheel."""
    return {name for name in wheel.namelist() if name.endswith(".py")}


@contextmanager
def index(folder: Path) -> Iterator[str]:
    """Serve a folder of projects as an index of packages; yield its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def command_names() -> set[str]:
    """Return the commands of `outbox`."""
    return set(typer.main.get_command(app.make_app()).commands)  # type: ignore[attr-defined]


def test_the_service_wheel_holds_neither_the_harness_nor_an_in_memory_twin(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        names = modules_of(wheel)
        sources = {name: wheel.read(name).decode() for name in names}
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {name.partition("/")[0] for name in names} == set(packages)
    assert not DEVELOPMENT & set(packages)
    assert [name for name, text in sources.items() if "class InMemory" in text] == []
    assert [name for name in names if "in_memory" in name] == []


def test_the_service_wheel_holds_every_template_and_file_of_the_console(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        names = set(wheel.namelist())
    console = PROJECT / "api" / "console"
    wanted = {
        str(path.relative_to(PROJECT))
        for folder in ("templates", "static")
        for path in (console / folder).iterdir()
    }
    assert wanted
    assert wanted <= names


def test_the_client_wheel_holds_every_module_of_the_client(tmp_path: Path) -> None:
    with build_wheel(PROJECT / CLIENT, tmp_path) as wheel:
        modules = modules_of(wheel)
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / CLIENT).rglob("*.py")}
    assert modules == wanted


@pytest.mark.skipif(
    "TEST_INSTALLS" not in process_environment(),
    reason="TEST_INSTALLS is not set: it installs packages into a new environment",
)
@pytest.mark.deep
@pytest.mark.parametrize("source", ["file", "index"])
def test_the_client_wheel_is_installed_from_its_file_or_an_index_and_works(
    source: str, tmp_path: Path
) -> None:
    """In an environment of its own, where no server of the outbox answers."""
    project = tmp_path / "index" / "outbox-client"
    subprocess.run(["make", "-C", str(PROJECT), "client", f"DIST={project}"], check=True)
    (wheel,) = project.glob("outbox_client-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "alone")], check=True)
    python = tmp_path / "alone" / "bin" / "python"
    with index(project.parent) as url:
        what = [wheel] if source == "file" else ["--extra-index-url", url, "outbox-client"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *what], check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True
    )
    installed = {each["name"] for each in json.loads(listed.stdout)}
    assert "outbox-client" in installed
    assert not {"outbox", "fastapi", "SQLAlchemy", "psycopg", "confluent-kafka"} & installed
    done = subprocess.run([python, "-c", CLIENT_PROGRAM], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"True True"), done.stderr


def test_the_harness_wheel_holds_every_module_and_its_entry_points(tmp_path: Path) -> None:
    with build_wheel(PROJECT / HARNESS, tmp_path) as wheel:
        modules, names = modules_of(wheel), wheel.namelist()
        (listed,) = (each for each in names if each.endswith("entry_points.txt"))
        text = wheel.read(listed).decode()
    wanted = {str(path.relative_to(PROJECT)) for path in (PROJECT / HARNESS).rglob("*.py")}
    assert modules == wanted
    entries = ConfigParser()
    entries.read_string(text)
    assert entries["console_scripts"]["outbox-chaos"] == "chaos.__main__:main"
    assert entries[app.EXTENSIONS]["chaos"] == "chaos.__main__:make_app"


def test_the_command_has_a_chaos_group_where_the_harness_is_installed() -> None:
    assert HARNESS in command_names()


def test_the_command_has_no_chaos_group_without_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "entry_points", lambda **_: ())
    assert HARNESS not in command_names()
