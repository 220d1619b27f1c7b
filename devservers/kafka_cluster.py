"""The nodes of a Kafka cluster: every node is a broker, and the first ones are controllers too."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from devservers.loopback import LOOPBACK, free_ports

NODE_ID = 1
MOST_REPLICAS = 3


def new_id() -> str:
    """Return a new id in Kafka's format, so that new data is never taken for an old cluster's."""
    return base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes of a cluster, and the settings that follow from their number."""

    controllers: Mapping[int, int]
    """the controller's port by node id"""
    nodes: int = 0
    """number of brokers, if some are no controllers"""
    id: str = field(default_factory=new_id)

    @property
    def voters(self) -> str:
        """The value of `controller.quorum.voters`."""
        return ",".join(f"{node}@{LOOPBACK}:{port}" for node, port in self.controllers.items())

    @property
    def replicas(self) -> int:
        """Number of replicas per partition: three, or one on each node."""
        return min(MOST_REPLICAS, self.size)

    @property
    def size(self) -> int:
        """Number of brokers."""
        return max(self.nodes, len(self.controllers))

    @property
    def in_sync(self) -> int:
        """Number of replicas that must have a record before its acknowledgement: all but one."""
        return max(1, self.replicas - 1)


def single_node(controller_port: int) -> Cluster:
    """Return a cluster of one node with a chosen port of its controller."""
    return Cluster(controllers={NODE_ID: controller_port})


def new_cluster(nodes: int, controllers: int | None = None) -> Cluster:
    """Return a cluster of nodes 1, 2, … whose controllers listen on free ports.

    Only the first `controllers` nodes are controllers: the others may die without the loss of a
    majority.
    """
    ports = free_ports(nodes if controllers is None else controllers)
    return Cluster(controllers=dict(enumerate(ports, 1)), nodes=nodes)
