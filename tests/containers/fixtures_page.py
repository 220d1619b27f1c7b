"""The commands of docs/containers.md, to be run as they are printed."""

from __future__ import annotations

import re
from typing import Final

from tests.containers.fixtures_stack import Stack
from tests.fixtures_paths import PROJECT

PAGE: Final = (PROJECT / "docs/containers.md").read_text("utf-8")
PRINTED_PORTS: Final = {"8443": "TLS_PORT"}


def commands(heading: str) -> list[str]:
    """Return the blocks of commands below a heading."""
    return blocks(heading, "sh")


def blocks(heading: str, language: str) -> list[str]:
    """Return the blocks of a language below a heading."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.M | re.S)


def typed(stack: Stack, commands: str, **variables: str) -> str:
    """Run commands of the page in the stack's folder; return what they print."""
    for printed, variable in PRINTED_PORTS.items():
        commands = commands.replace(f":{printed}", f":{stack.ports[variable]}")
    settings = [f"{name}={value}" for name, value in variables.items()]
    return stack.run("env", *settings, "bash", "-euc", commands)
