"""The embedded broker: the features that the exactly-once protocol needs, and restarts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devservers.errors import ArtifactsMissing
from devservers.kafka import EmbeddedKafka
from devservers.kafka_cluster import new_cluster
from devservers.kafka_wire import active_controller, has_controller
from tests.fixtures_separate_broker import running_nodes

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that these tests may kill, and that the last of them stops."""
    broker = EmbeddedKafka(tmp_path_factory.mktemp("own") / "kafka")
    broker.start()
    yield broker
    broker.kill()


def test_a_stopped_broker_reports_how_it_ended(own_broker: EmbeddedKafka) -> None:
    assert own_broker.exit_code() is None
    own_broker.stop()
    assert not has_controller(own_broker.port)


def test_a_release_that_is_not_fetched_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(ArtifactsMissing, match=r"make kafka KAFKA=0\.0\.1"):
        EmbeddedKafka(tmp_path / "kafka", release="0.0.1")


@pytest.mark.deep
def test_a_cluster_with_one_controller_outlives_every_other_node(tmp_path: Path) -> None:
    cluster = new_cluster(2, controllers=1)
    nodes = [EmbeddedKafka(tmp_path / f"{n}", cluster=cluster, node_id=n) for n in (1, 2)]
    with running_nodes(nodes):
        nodes[1].kill()
        assert active_controller(nodes[0].port) == 1
