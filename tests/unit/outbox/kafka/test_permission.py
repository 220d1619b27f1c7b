"""Which rights are missing, from what a broker says is allowed."""

from __future__ import annotations

import pytest
from confluent_kafka.admin._acl import AclOperation

from outbox.kafka.permission import TO_RELAY, lacking, needed, the_topic

READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE_CONFIGS = AclOperation.DESCRIBE_CONFIGS


@pytest.mark.parametrize(
    ("allowed", "missing"),
    [
        ([READ, WRITE, DESCRIBE_CONFIGS], None),
        ([WRITE, DESCRIBE_CONFIGS], "READ"),
        ([READ], "WRITE and DESCRIBE_CONFIGS"),
        ([AclOperation.DESCRIBE], "WRITE and READ and DESCRIBE_CONFIGS"),
        ([], None),
        (None, None),
    ],
)
def test_what_a_broker_does_not_allow_is_missing_unless_it_does_not_say(
    allowed: list[AclOperation] | None, missing: str | None
) -> None:
    assert lacking(allowed, TO_RELAY) == missing


def test_a_missing_right_names_the_operation_the_resource_and_the_page() -> None:
    said = needed("READ", the_topic("invoices"))
    assert said == "this principal needs READ on the topic invoices: docs/security.md, Kafka ACLs"
