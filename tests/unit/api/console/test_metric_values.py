"""The console reads from the metrics page what its visitor may see."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from api.console.metric_values import MetricValues
from outbox.access import Caller

ANYBODY = Caller(key_id="k", scopes=frozenset(), groups=None)
HOSTILE = 'a b{c="d"} \\ "e"\nf'


def page() -> bytes:
    registry = CollectorRegistry()
    held = Gauge("outbox_held_messages", "x", ["producer_group", "topic"], registry=registry)
    held.labels("billing", HOSTILE).set(3)
    held.labels("shop", "orders").set(5)
    Gauge("outbox_held_messages_old", "outbox_held_messages 9", registry=registry).set(7)
    Histogram("outbox_seconds", "x", ["producer_group"], registry=registry).labels("shop")
    return generate_latest(registry)


def test_the_values_of_one_metric_come_with_their_labels_the_largest_first() -> None:
    values = MetricValues(page(), ANYBODY)
    assert [(each.labels, each.value) for each in values.of("held_messages")] == [
        ({"producer_group": "shop", "topic": "orders"}, 5),
        ({"producer_group": "billing", "topic": HOSTILE}, 3),
    ]
    assert [each.value for each in values.of("held_messages_old")] == [7]
    assert [each.value for each in values.of("seconds_count")] == [0]
    assert values.of("nothing") == []


def test_a_caller_of_some_groups_gets_the_values_of_these_alone() -> None:
    values = MetricValues(page(), replace(ANYBODY, groups=frozenset({"billing"})))
    assert [each.value for each in values.of("held_messages")] == [3]
    assert values.of("held_messages_old") == []
