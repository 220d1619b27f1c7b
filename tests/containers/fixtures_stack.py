"""The operations stack of a copy of the project, in containers with a name and ports of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

import httpx2

from devservers.loopback import free_ports
from tests.fixtures_paths import PROJECT
from tests.fixtures_waiting import wait_for

COPIED = (
    *("Makefile", "docker-compose.yml", ".dockerignore", "pyproject.toml", "README.md"),
    *("requirements", "deploy", "docs", "migrations", "examples"),
    *("outbox", "api", "checker", "spark", "cli", "devservers", "outbox_client"),
)
PORTS = ("API_PORT", "KAFKA_PORT", "PROMETHEUS_PORT", "TLS_PORT", "ACCOUNT_PORT")
NAME = "outbox-test"
SECRETS = "secrets"
UP_SECONDS = 900
"""For a whole stack on a busy machine, its images included."""
ALL_PROFILES = ("--profile", "*")
KILLED = 137
"""The exit code of a container that did not end by itself."""


@dataclass(slots=True, kw_only=True)
class Stack:
    """A copy of the project whose stack has a name and ports of its own."""

    folder: Path
    environment: Mapping[str, str]
    ports: Mapping[str, int]
    admin_key: str = field(default="", repr=False)

    def run(self, *command: str, text_in: str | None = None, check: bool = True) -> str:
        """Run a command in the folder; return its output. Fails with all it wrote."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=text_in,
            capture_output=True,
            text=True,
            timeout=UP_SECONDS,
            check=False,
        )
        said = f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0 or not check, said[-6000:]
        return done.stdout if check else said

    def up(self) -> None:
        """Start it as an operator does. Fails with the last lines of every log."""
        said = self.run("make", "up", check=False)
        assert "make: ***" not in said, f"{said[-3000:]}\n{self.compose('logs', '--tail=30')}"

    def compose(self, *words: str, check: bool = True) -> str:
        """Run a compose command on every service, those of profiles included."""
        return self.run("docker", "compose", *ALL_PROFILES, *words, check=check)

    def delete(self) -> None:
        """Delete its containers, volumes and networks, also before it has secrets."""
        compose = ("env", "SECRETS_MADE=no", "docker", "compose", *ALL_PROFILES)
        self.run(*compose, "down", "--volumes", "--remove-orphans", check=False)

    def outbox(self, *words: str, check: bool = True) -> str:
        """Run a command of outbox in the API's container, with the first key."""
        return self.compose(
            *("exec", "-T", "-e", f"OUTBOX_API_KEY={self.admin_key}", "api", "outbox", *words),
            check=check,
        )

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return what the engine knows of each container of the stack, by its service."""
        listed = self.compose("ps", "--all", "--quiet").split()
        found = json.loads(self.run("docker", "inspect", *listed)) if listed else []
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in found}

    def is_healthy(self, service: str) -> bool:
        """Return whether a container runs and its own check says that it is well."""
        state = self.containers()[service]["State"]
        health = state.get("Health", {}).get("Status", "healthy")
        return bool(state["Running"]) and health == "healthy"

    def crash(self, service: str) -> None:
        """Kill a container's first process as the kernel would; the engine starts it again."""
        before = self.containers()[service]
        os.kill(before["State"]["Pid"], SIGKILL)
        wait_for(lambda: self.containers()[service]["RestartCount"] > before["RestartCount"])

    def http(self, **options: Any) -> httpx2.Client:
        """Return a client of the published port, with the first key."""
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.ports['API_PORT']}",
            headers={"authorization": f"Bearer {self.admin_key}"},
            trust_env=False,
            timeout=60,
            **options,
        )


@contextmanager
def stack_of_a_copy(
    folder: Path, engine: Mapping[str, str], *, name: str = NAME, source: Path = PROJECT
) -> Iterator[Stack]:
    """Yield a stack that is not up yet; delete its containers, volumes and networks afterwards."""
    folder.mkdir()
    copy_files(source, folder)
    (folder / ".runtime/spark").mkdir(parents=True)
    for jar in (PROJECT / ".runtime/spark").glob("*.jar"):
        shutil.copy(jar, folder / ".runtime/spark")
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    texts = {variable: str(port) for variable, port in ports.items()}
    environment = {**engine, **texts, "COMPOSE_PROJECT_NAME": name}
    stack = Stack(folder=folder, environment=environment, ports=ports)
    stack.delete()
    try:
        yield stack
    finally:
        stack.delete()


def copy_files(source: Path, folder: Path) -> None:
    """Replace the files of a stack's folder by those of a tree; its secrets stay."""
    for name in COPIED:
        old, new = folder / name, source / name
        for path in old.iterdir() if old.is_dir() else ():
            if path.name != SECRETS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if new.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", SECRETS)
            shutil.copytree(new, old, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(new, old)
