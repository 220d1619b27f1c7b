"""A process that has imported the libraries, and forks for each run of tests.

A new interpreter would spend most of a run on imports. Nothing of the product is imported here:
each fork imports the product as it is then. One JSON line in: a number, the arguments of pytest and
the file for its output. One line out: the number, when the run has ended. Who has stopped waiting
for a run can tell its line from that of the next.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, NoReturn

import pytest

LIBRARIES: Final = (
    "aiohttp alembic.command alembic.config confluent_kafka.admin cryptography.fernet"
    " cryptography.hazmat.primitives.ciphers.aead cryptography.hazmat.primitives.kdf.hkdf"
    " fastapi http.server httptools httpx2 hypothesis jinja2 jinja2_fragments msgspec"
    " prometheus_client.asgi psycopg psycopg_pool pydantic.v1 pydantic_settings rich.table"
    " sqlalchemy.dialects.postgresql sqlalchemy.orm standardwebhooks structlog typer uvicorn"
    " uvicorn.protocols.http.httptools_impl uvloop xml.etree.ElementTree xxhash"
)


def main() -> None:
    """Serve runs until the input ends."""
    import_libraries()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(asked["arguments"], asked["output"])
        os.waitpid(child, 0)
        sys.stdout.write(f"{asked['number']}\n")
        sys.stdout.flush()


def import_libraries() -> None:
    """Import what each run needs and no mutant changes; no collection looks at it again."""
    for name in LIBRARIES.split():
        with suppress(ImportError):
            import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    assert not [name for name in sys.modules if name.partition(".")[0] == "outbox"]
    gc.collect()
    gc.freeze()


def _run(arguments: list[str], output: str) -> NoReturn:
    """Run pytest in this fork, with its output in a file."""
    with Path(output).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments])
    sys.stdout.flush()
    os._exit(int(code))


if __name__ == "__main__":
    main()
