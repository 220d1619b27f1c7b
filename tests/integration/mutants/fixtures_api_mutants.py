"""Mutants of the API: its limits, its scopes and the way of a prepare."""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.fixtures_mutant import ProductMutant

API: Final = "tests/integration/api"

API_MUTANTS: Final = (
    ProductMutant(
        promise="A batch costs a token of the rate for each of its items",
        file="api/ingest/hot_routes.py",
        rule="self._prepares.spend(request.caller, len(slices))",
        broken="self._prepares.spend(request.caller)",
        killer=(
            f"{API}/ingest/test_rate_limits.py::test_a_batch_costs_a_token_for_each_of_its_items"
        ),
    ),
    ProductMutant(
        promise="A batch larger than the bucket leaves a debt",
        file="api/http/rate_limits.py",
        rule="bucket.tokens -= items",
        broken="bucket.tokens -= min(items, bucket.tokens)",
        killer=(
            "tests/unit/api/http/test_rate_limits.py"
            "::test_a_batch_counts_its_items_and_a_larger_one_passes_and_leaves_a_debt"
        ),
    ),
    ProductMutant(
        promise="A caller is known before its body is read",
        file="api/guard.py",
        rule="        if not caller.has(route.scope):\n",
        broken="        if False:\n",
        killer=f"{API}/http/test_routes_and_keys.py::test_a_route_needs_its_scope[end]",
    ),
    ProductMutant(
        promise="An operator's decision is logged with the operator as who decided",
        file="api/admin/routes/half_messages.py",
        rule="decided_by=DecidedBy.OPERATOR,",
        broken="",
        killer=(
            f"{API}/admin/test_operations.py"
            "::test_an_operators_decision_wins_like_any_other_and_is_audited"
        ),
    ),
    ProductMutant(
        promise="A transaction id and another Idempotency-Key are refused together",
        file="api/ingest/prepare_rules.py",
        rule="if given is not None and given != alias:",
        broken="if False:",
        killer=f"{API}/ingest/test_bad_prepare.py::test_a_wrong_idempotency_key_is_refused",
    ),
    ProductMutant(
        promise="A group writes only the topics of its list",
        file="api/ingest/ingest.py",
        rule='topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed',
        broken='topic.startswith(allowed.rstrip("*"))',
        killer=f"{API}/ingest/test_bad_prepare.py::test_a_topic_that_the_group_may_not_write_is_refused",
    ),
    ProductMutant(
        promise="Nothing is refused while Kafka is away",
        file="api/ingest/topic_cache.py",
        rule="if self._has(topic, partition) or not self.reachable:",
        broken="if self._has(topic, partition):",
        killer=(
            "tests/unit/api/ingest/test_topic_cache.py"
            "::test_nothing_is_refused_and_no_prepare_waits_while_kafka_is_down"
        ),
    ),
    ProductMutant(
        promise="No caller is answered before its flush has committed",
        file="api/ingest/batcher.py",
        rule="            outcomes = await self._flush(items)\n        except Exception as error:",
        broken=(
            "            flush = asyncio.ensure_future(self._flush(items))\n"
            "            outcomes = [None] * len(items) if not flush.done() else flush.result()\n"
            "        except Exception as error:"
        ),
        killer=(
            "tests/unit/api/ingest/test_batcher.py"
            "::test_no_caller_is_answered_before_the_flush_has_returned"
        ),
    ),
)
