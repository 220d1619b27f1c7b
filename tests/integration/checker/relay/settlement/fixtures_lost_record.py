"""A record that Kafka has lost below a manifest."""

from __future__ import annotations

from typing import Final

from outbox.messages.manifest import Manifest
from tests.integration.checker.relay.fixtures_relay import RelayWorld
from tests.integration.checker.relay.settlement.fixtures_unseen_batches import (
    abort_record,
    listed,
    write_manifest,
)

NEWEST: Final = "SELECT max(half_id) FROM outbox.half_message"
PAST: Final = 1
"""Batches that the shard has published before."""


def lose_the_record(world: RelayWorld) -> Manifest:
    """Leave a committed manifest in Kafka beside the aborted record that it lists; return it."""
    message, manifest = listed(world, PAST)
    abort_record(world, message, manifest)
    write_manifest(world, manifest, commit=True)
    return manifest
