"""Starts a container engine with stand-ins of the stack's images, or says why that cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM

from devservers.child import Child, Command
from devservers.errors import ServerFailed
from outbox.settings.environment import process_environment
from tests.fixtures_paths import PROJECT

STANDINS = PROJECT / "tests/containers/standins"
IMAGES = ("python", "postgres", "kafka", "nginx")
"""What every stack is made of; `make_images` adds those of profiles."""
START_SECONDS = 60
BUILD_SECONDS = 1800
NO_CONTAINER = 3
"""The exit code of images.sh where the engine runs and a container does not start."""


class NoEngine(Exception):
    """No container engine can be started here; the text says why."""


@contextmanager
def container_engine() -> Iterator[Mapping[str, str]]:
    """Yield the environment of a client of a running engine that has the stand-ins of a stack.

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
                engine.stop()


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


def _start(folder: Path, environment: Mapping[str, str]) -> Child:
    """Start an engine with Docker's own data folder; its socket is in the folder.

    It is in a session of its own, so that an interrupt of the tests does not reach it.
    """
    _need("dockerd", "iptables")
    if os.geteuid() != 0:
        raise NoEngine("only root may start a container engine")
    flags = [f"--host={environment['DOCKER_HOST']}", f"--exec-root={folder}/exec"]
    program = str(shutil.which("dockerd"))
    engine = Child(
        Command(
            name="dockerd",
            arguments=[program, *flags, f"--pidfile={folder}/pid"],
            log=folder / "log",
            orphan_signal=SIGTERM,
            stop_seconds=60,
        )
    )
    try:
        engine.wait_until(lambda: _answers(environment), START_SECONDS)
    except ServerFailed as error:
        engine.stop()
        raise NoEngine(str(error)) from None
    return engine


def _make_standins(environment: Mapping[str, str]) -> None:
    """Build the compose plugin and the images that are missing. Raises NoEngine."""
    with ThreadPoolExecutor() as builders:
        for built in (
            builders.submit(_make_plugin, environment),
            builders.submit(make_images, environment, *IMAGES),
        ):
            built.result()


def _make_plugin(environment: Mapping[str, str]) -> None:
    if not _answers(environment, "compose", "version"):
        _need("go")
        _run(environment, "compose-plugin.sh")


def make_images(environment: Mapping[str, str], *images: str) -> None:
    """Build those of some stand-ins that are missing. Raises NoEngine."""
    named = (str(STANDINS / "images.sh"), "--names", *images)
    names = subprocess.run(named, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    if not _answers(environment, "image", "inspect", *names.stdout.split()):
        _need("debootstrap", "mvn")
        _run(environment, "images.sh", *images)


def _run(environment: Mapping[str, str], script: str, *arguments: str) -> None:
    words = [str(STANDINS / script), *arguments]
    done = subprocess.run(words, env=environment, timeout=BUILD_SECONDS, check=False)
    if done.returncode == NO_CONTAINER:
        raise NoEngine("dockerd runs, and no container starts")
    done.check_returncode()
