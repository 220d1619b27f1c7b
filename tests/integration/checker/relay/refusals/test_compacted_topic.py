"""A topic that its operator has compacted takes no record without a key."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fixtures_kafka import make_topic
from tests.fixtures_replacing import replace
from tests.integration.checker.relay.fixtures_relay import RelayWorld, first_batch
from tests.integration.checker.relay.refusals.fixtures_refused_records import drops, open_rows

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

COMPACTED: Final = {"cleanup.policy": "compact,delete"}
MANY: Final = 30
FEW_DROPS: Final = 3
"""Fewer producers than refused records: what is behind these waits for each producer."""


def test_records_without_a_key_are_held_together_and_those_with_one_are_published(
    world: RelayWorld,
) -> None:
    world.topic = make_topic(world.bootstrap_servers, partitions=1, config=COMPACTED)
    template = world.message()
    keys = [b"first", *[None] * MANY, b"last"]
    world.commit(*(replace(template, key=key, value=b"%d" % n) for n, key in enumerate(keys)))
    first_batch(world.relay())
    assert world.values(2) == [b"0", b"%d" % (MANY + 1)]
    assert open_rows(world) == MANY
    assert drops(world, "refused") <= FEW_DROPS
