"""The embedded broker: the features that the exactly-once protocol needs, and restarts."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.kafka_wire import has_controller
from devservers.ports import free_ports
from tests.integration.devservers.fixtures_finalized_features import finalized_features

pytestmark = pytest.mark.kafka


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker this test may kill."""
    broker = EmbeddedKafka(tmp_path / "kafka")
    broker.start()
    yield broker
    broker.kill()


def test_transaction_version_2_is_finalized(kafka_broker: EmbeddedKafka) -> None:
    """A storage formatted without Kafka's tool would leave it at 0."""
    assert finalized_features(kafka_broker.port)["transaction.version"] == 2


def test_a_port_without_a_broker_has_no_controller() -> None:
    assert not has_controller(free_ports(1)[0])


def test_a_killed_broker_is_back_on_its_port_with_its_cluster(own_broker: EmbeddedKafka) -> None:
    before = (own_broker.port, finalized_features(own_broker.port))
    own_broker.kill()
    began = monotonic()
    own_broker.start()
    assert (own_broker.port, finalized_features(own_broker.port)) == before
    assert monotonic() - began < 10, "the broker waited for its own old session"


def test_a_stopped_broker_reports_how_it_ended(own_broker: EmbeddedKafka) -> None:
    assert own_broker.exit_code() is None
    own_broker.stop()
    assert not has_controller(own_broker.port)
