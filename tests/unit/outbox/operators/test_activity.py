"""What a process did is the growth of its counters since it was written last."""

from __future__ import annotations

from outbox.operators.activity import COUNTS, ProcessActivity
from outbox.postgres.schema.operator_tables import activity
from outbox.telemetry.metrics import Metrics


def test_each_count_is_written_once_and_by_group() -> None:
    metrics = Metrics()
    metrics["half_prepared_total"].labels("billing").inc(7)
    done = ProcessActivity(metrics)
    metrics["half_prepared_total"].labels("billing").inc(3)
    metrics["half_ended_total"].labels("billing", "COMMIT", "producer").inc(2)
    metrics["half_ended_total"].labels("billing", "COMMIT", "check").inc()
    metrics["half_ended_total"].labels("shop", "ROLLBACK", "check").inc()
    metrics["publish_total"].labels("a", "shop").inc(4)
    metrics["publish_total"].labels("b", "shop").inc(5)
    metrics["checks_total"].labels("shop", "timeout").inc()
    metrics["checks_total"].labels("shop", "skipped").inc()
    growth = done.growth()
    assert growth == {
        "billing": {"prepared": 3, "committed": 3},
        "shop": {"rolled_back": 1, "published": 9, "check_timeout": 1},
    }
    assert done.growth() == growth
    done.written(growth)
    assert done.growth() == {}
    metrics["publish_total"].labels("b", "shop").inc()
    assert done.growth() == {"shop": {"published": 1}}


def test_the_table_has_a_column_for_each_count() -> None:
    assert [column.name for column in activity.columns][2:] == list(COUNTS)
