"""A planted cost uses at least so much CPU time for each message, and changes no digest."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import ModuleType

from benchmarks.measure.planted_cost import MODULE, plant
from outbox.messages.message import Content
from outbox.messages.message_id import HalfId, Nonce
from outbox.messages.record import digest_of
from tests.fixtures_paths import PROJECT

MICROS = 20_000


def load(path: Path) -> ModuleType:
    """Import a module from its file."""
    spec = importlib.util.spec_from_file_location("planted_record", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_message_of_a_planted_checkout_costs_more_and_has_the_same_digest(
    tmp_path: Path,
) -> None:
    copy = tmp_path / MODULE
    copy.parent.mkdir(parents=True)
    copy.write_bytes((PROJECT / MODULE).read_bytes())
    plant(tmp_path, MICROS)
    asked = (HalfId(1), Nonce(2), Content(topic="points", value=b"1"), "billing", None)
    began = time.thread_time()
    planted = load(copy).digest_of(*asked)
    assert time.thread_time() - began >= MICROS / 1e6
    assert planted == digest_of(*asked)
