"""For every input, the answers of the service match its OpenAPI document.

``OUTBOX_FUZZ_CASES`` sets how many cases of each operation are made up; a release takes 300, which
comes to more than 10 000 in all. ``OUTBOX_FUZZ_SEED`` makes up others, for a release in parts.
"""

from __future__ import annotations

import asyncio
import base64
import re
import sys
from pathlib import Path

import pytest

from cli.stores.bootstrap_key import administrator_key
from devservers.kafka import EmbeddedKafka
from outbox.settings.environment import process_environment
from tests.fixtures_kafka import make_topic
from tests.integration.api.fixtures_api_process import Process, served
from tests.integration.api.fixtures_service import CHECK_URL, GROUP, GROUPS, TOPIC

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

PROGRAM = Path(sys.executable).with_name("schemathesis")
CONFIG = Path(__file__).with_name("schemathesis.toml")
PEPPER = base64.b64encode(b"pepper of the tests").decode()
RING = base64.b64encode(bytes(32)).decode()
CASES = int(process_environment().get("OUTBOX_FUZZ_CASES", "2"))
SECONDS = 480.0 + 12.0 * CASES
SEED = process_environment().get("OUTBOX_FUZZ_SEED", "20261121")


async def test_every_answer_is_defined_by_the_contract(
    database_url: str, kafka_broker: EmbeddedKafka, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    make_topic(servers, partitions=1, name=TOPIC)
    key = await asyncio.to_thread(administrator_key, database_url, PEPPER, "fuzz")
    settings = {"AUTH_MODE": "keys", "AUTH_PEPPER": PEPPER, "ENCRYPTION_KEYS": RING}
    settings["KAFKA_BOOTSTRAP_SERVERS"] = servers
    async with served(database_url, seconds=SECONDS, **settings) as service:
        service.client.headers["authorization"] = f"Bearer {key}"
        await service.client.put(f"{GROUPS}/{GROUP}", json={"check_url": CHECK_URL})
        code, output = await fuzzed(service, key, tmp_path)
    sys.stdout.write(output)
    cases = re.search(r"(\d+) generated", output)
    assert code == 0, output[-20_000:]
    assert cases is not None
    assert int(cases[1]) > 30 * CASES


async def fuzzed(service: Process, key: str, folder: Path) -> tuple[int | None, str]:
    """Run all checks and phases over every operation; return the exit code and the output."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("--config-file", CONFIG, "run", f"http://127.0.0.1:{service.port}/openapi.json"),
        *("--header", f"Authorization: Bearer {key}", "--seed", SEED),
        *("--max-examples", str(CASES), "--continue-on-failure", "--no-color"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.communicate()
        raise
    return process.returncode, output.decode()
