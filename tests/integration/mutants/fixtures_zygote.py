"""A process that has imported the libraries and the product, and forks for each run of tests.

A new interpreter would spend most of a run on imports. If a file of the product is another one than
it was at first, its fork imports again what that concerns. One JSON line in: a number, that file if
there is one, the arguments of pytest and the file for its output. One line out: the number, when
the run has ended. Who has stopped waiting for a run can tell its line from that of the next.
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

from tests.integration.mutants.fixtures_imports import ImportedModules

LIBRARIES: Final = (
    "aiohttp alembic.command alembic.config confluent_kafka.admin cryptography.fernet"
    " cryptography.hazmat.primitives.ciphers.aead cryptography.hazmat.primitives.kdf.hkdf"
    " fastapi http.server httptools httpx2 hypothesis jinja2 jinja2_fragments msgspec"
    " prometheus_client.asgi psycopg psycopg_pool pydantic.v1 pydantic_settings rich.table"
    " sqlalchemy.dialects.postgresql sqlalchemy.orm standardwebhooks structlog typer uvicorn"
    " uvicorn.protocols.http.httptools_impl uvloop xml.etree.ElementTree xxhash"
)
PRODUCT: Final = (
    "api.wiring checker.wiring cli.app outbox_client tests.aged_installation.fixtures_template"
    " tests.contract.fixtures_half_stores tests.integration.api.fixtures_keys"
    " tests.integration.api.http.authentication.fixtures_routes"
    " tests.integration.checker.fixtures_producer"
)
"""What most runs import; no test, because pytest rewrites these."""
KEPT: Final = ("tests.integration.api.http.authentication.fixtures_contract",)
"""What is not imported again: the contract of the product as it is, which is plain data."""
READY: Final = 0
"""The number of the first answer: from now on a file may be changed."""


def main() -> None:
    """Serve runs until the input ends."""
    import_libraries()
    imported = import_product()
    from outbox.postgres.sessions import statements

    _answer(READY)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            if asked["changed"] is not None:
                imported.forget(Path(asked["changed"]))
                statements.load.cache_clear()
            _run(asked["arguments"], asked["output"])
        os.waitpid(child, 0)
        _answer(asked["number"])


def import_libraries() -> None:
    """Import what each run needs and no mutant changes; no collection looks at it again."""
    for name in LIBRARIES.split():
        with suppress(ImportError):
            import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    assert not [name for name in sys.modules if name.partition(".")[0] == "outbox"]


def import_product() -> ImportedModules:
    """Import the product as it is, from the folder in which this process has been started."""
    for name in PRODUCT.split():
        import_module(name)
    gc.collect()
    gc.freeze()
    return ImportedModules(Path.cwd(), KEPT)


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


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
