"""The relay refuses properties of its Kafka client before it connects to anything."""

from __future__ import annotations

import pytest

from checker.relay_wiring import relay_threads
from outbox.errors import ConfigurationError
from outbox.settings.environment import load_settings
from outbox.telemetry.metrics import Metrics


@pytest.mark.parametrize("config", ['{"socket.timeout.ms": 60000}', '{"no.such.property": 1}'])
def test_a_relay_whose_producers_could_never_start_does_not_start(config: str) -> None:
    """It would look as if Kafka were away."""
    settings = load_settings(
        {
            "OUTBOX_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "OUTBOX_KAFKA_CONFIG": config,
        }
    )
    with pytest.raises(ConfigurationError, match="OUTBOX_KAFKA_CONFIG"):
        relay_threads(settings, Metrics())
