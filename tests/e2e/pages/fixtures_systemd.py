"""systemd where it is not the first process: a folder stands for the root of the machine.

Units are enabled by systemd's own ``systemctl``. What needs the first process, to start a unit and
to run a command as one, is done here by what the unit says: its settings, its credentials, its
program. The unit's limits and its user are not: `tests/unit/deploy/test_systemd.py` has systemd
read them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PLACES = re.compile(r"/(?:opt|etc|usr/local/sbin)\b")
UNITS = "etc/systemd/system"
SYSTEMCTL = "/usr/bin/systemctl"


def below(root: Path, text: str) -> str:
    """Move the places of a text, such as `/etc`, below a folder."""
    return PLACES.sub(lambda place: f"{root}{place[0]}", text)


def systemctl(root: Path, verb: str, *words: str) -> int:
    """Do what the page asks of systemd; return the exit code."""
    if verb == "daemon-reload":
        return 0
    names = [word for word in words if not word.startswith("-")]
    if verb == "enable":
        subprocess.run([SYSTEMCTL, f"--root={root}", "--quiet", "enable", *names], check=True)
    for name in names:
        unit = Unit(root, name)
        if unit.is_oneshot:
            return subprocess.run(unit.command, env=unit.environment, check=False).returncode
        process = subprocess.Popen(
            unit.command,
            env=unit.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with (root / "started").open("a") as file:
            file.write(f"{process.pid}\n")
    return 0


def systemd_run(root: Path, words: Sequence[str]) -> int:
    """Run a command as `systemd-run` does."""
    options = [word for word in words if word.startswith("--")]
    first = next(place for place, word in enumerate(words) if not word.startswith("--"))
    given = dict(
        word.removeprefix("--setenv=").split("=", 1) for word in options if "setenv" in word
    )
    (file,) = (word.rpartition("=")[2] for word in options if "EnvironmentFile=" in word)
    settings = {**plain(), **read_settings(Path(file).read_text()), **given}
    return subprocess.run(words[first:], env=settings, check=False).returncode


class Unit:
    """A service of the folder."""

    def __init__(self, root: Path, name: str) -> None:
        text = below(root, (root / UNITS / f"{name}.service").read_text())
        pairs = read_all(text)
        (file,) = pairs["EnvironmentFile"]
        credentials = root / "run" / name
        credentials.mkdir(parents=True, exist_ok=True)
        for each in pairs["LoadCredential"]:
            known, _, path = each.partition(":")
            (credentials / known).write_bytes(Path(path).read_bytes())
        own = (each.replace("%d", str(credentials)).split("=", 1) for each in pairs["Environment"])
        self.environment = {**plain(), **read_settings(Path(file).read_text()), **dict(own)}
        self.command = pairs["ExecStart"][0].split()
        self.is_oneshot = pairs.get("Type") == ["oneshot"]


def read_all(text: str) -> dict[str, list[str]]:
    """Return the values of each setting of a unit."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def read_settings(text: str) -> dict[str, str]:
    """Return the lines of an environment file."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def plain() -> dict[str, str]:
    """Return what every process gets."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/nonexistent"}


if __name__ == "__main__":
    _, program, folder, *arguments = sys.argv
    root = Path(folder)
    done = systemctl(root, *arguments) if program == "systemctl" else systemd_run(root, arguments)
    sys.exit(done)
