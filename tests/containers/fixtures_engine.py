"""Starts a container engine with stand-ins of the stack's images, or says why that cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

STANDINS = PROJECT / "tests/containers/standins"
IMAGES = ("python", "postgres", "kafka", "prometheus", "nginx")
BUILD_SECONDS = 1800


class NoEngine(Exception):
    """No container engine can be started here; the text says why."""


@contextmanager
def container_engine() -> Iterator[Mapping[str, str]]:
    """Yield the environment of a client of a running engine that has all stand-ins.

    An engine that runs already is used and stays. Raises NoEngine.
    """
    _need("docker")
    with tempfile.TemporaryDirectory(prefix="outbox-engine-") as folder:
        environment = process_environment() | _client()
        engine = None
        if not _answers(environment):
            environment["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
            engine = _start(Path(folder), environment)
        try:
            _make_standins(environment)
            yield environment
        finally:
            if engine is not None:
                engine.terminate()
                engine.wait(60)


def _need(*programs: str) -> None:
    """Raise NoEngine that names the packages of the programs that are not installed."""
    packages = {"docker": "docker.io", "dockerd": "docker.io", "mvn": "maven", "go": "golang"}
    missing = {packages.get(each, each) for each in programs if shutil.which(each) is None}
    if missing:
        raise NoEngine(f"not installed: {', '.join(sorted(missing))} (apt-get install)")


def _client() -> dict[str, str]:
    """Return the settings of the client; they are those of standins/common.sh."""
    caches = Path(process_environment().get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return {"DOCKER_CONFIG": str(caches / "outbox-containers/client"), "DOCKER_BUILDKIT": "0"}


def _answers(environment: Mapping[str, str], *command: str) -> bool:
    """Return whether a command of the client succeeds; without one, whether the engine answers."""
    words = ["docker", *(command or ["version"])]
    done = subprocess.run(words, env=environment, capture_output=True, timeout=30, check=False)
    return done.returncode == 0


def _start(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start an engine with Docker's own data folder; its socket is in the folder."""
    _need("dockerd", "iptables")
    if os.geteuid() != 0:
        raise NoEngine("only root may start a container engine")
    flags = [f"--host={environment['DOCKER_HOST']}", f"--exec-root={folder}/exec"]
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(
            ["dockerd", *flags, f"--pidfile={folder}/pid"],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: engine.poll() is not None or _answers(environment), every=0.5)
        if engine.poll() is None:
            return engine
    except AssertionError:
        engine.terminate()
    last = (folder / "log").read_text("utf-8", "replace").strip().splitlines()[-1:]
    raise NoEngine(f"dockerd does not start: {last}")


def _make_standins(environment: Mapping[str, str]) -> None:
    """Build the compose plugin and the images that are missing. Raises NoEngine."""
    if not _answers(environment, "compose", "version"):
        _need("go")
        _run(environment, "compose-plugin.sh")
    named = (str(STANDINS / "images.sh"), "--names", *IMAGES)
    names = subprocess.run(named, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    if not _answers(environment, "image", "inspect", *names.stdout.split()):
        _need("debootstrap", "mvn")
        _run(environment, "images.sh", *IMAGES)


def _run(environment: Mapping[str, str], script: str, *arguments: str) -> None:
    words = [str(STANDINS / script), *arguments]
    subprocess.run(words, env=environment, timeout=BUILD_SECONDS, check=True)
