"""Which node of which cluster a broker is. Every node is broker and controller."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from devservers.ports import LOOPBACK, free_ports

MOST_REPLICAS = 3


def new_cluster_id() -> str:
    """Return an id of Kafka's form, so that data made afresh is never taken for the old cluster."""
    return base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes that make up a cluster, and what follows from their number."""

    controllers: Mapping[int, int]
    """the controller's port of each node id"""
    id: str = field(default_factory=new_cluster_id)

    @property
    def voters(self) -> str:
        """The quorum as `controller.quorum.voters` names it."""
        return ",".join(f"{node}@{LOOPBACK}:{port}" for node, port in self.controllers.items())

    @property
    def replicas(self) -> int:
        """How many copies a partition has: three, or one on each node."""
        return min(MOST_REPLICAS, len(self.controllers))

    @property
    def in_sync(self) -> int:
        """How many copies must have a record before it is acknowledged: all but one."""
        return max(1, self.replicas - 1)


def new_cluster(nodes: int) -> Cluster:
    """Return a cluster of new nodes 1, 2, … whose controllers listen on free ports."""
    return Cluster(controllers=dict(enumerate(free_ports(nodes), 1)))
