"""The view of the whole installation, which reads both stores for operators; it has no secret."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from api.http.shared_read import SharedRead
from api.http.tenant_shares import SLOW_PLACES, TenantShares
from outbox.clock import Clock
from outbox.errors import KafkaUnavailable
from outbox.kafka.health.kafka_checks import kafka_checks, unreachable
from outbox.kafka.health.partition_states import partition_states
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.operators.health_check import HealthCheck, health_check
from outbox.operators.shown_settings import shown_settings
from outbox.operators.store_view import PartitionState, ShardState, ShownSetting, shard_state
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.operators.postgres_checks import postgres_checks, stored_topics
from outbox.reconciliation.log import Partition
from outbox.settings.catalogue import Settings
from outbox.settings.environment import gather, process_environment
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.redaction import redaction

NO_ANSWER: Final = "Kafka does not answer"
FRESH_SECONDS: Final = 1.0
"""How long a look is remembered, so that many open pages cost the stores one look a second."""
HEALTH_SECONDS: Final = 4.0
"""The same for the health checks, which cost most."""


class StoresView:
    """Reads the state of both stores, each look in a thread; callers that come meanwhile share it.

    Each look has a session and a client of its own. ``kafka_answers`` is what the process knows
    already: a cluster that is away costs no wait. ``refused_flush`` is why the last flush of this
    process was refused.
    """

    def __init__(
        self,
        settings: Settings,
        kafka_answers: Callable[[], bool],
        refused_flush: Callable[[], str | None],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self.refused_flush = refused_flush
        self._kafka_answers = kafka_answers
        self._clock = clock
        self.shards = SharedRead(partial(to_thread, self._read_shards), clock, FRESH_SECONDS)
        """Every shard. Raises DatabaseUnavailable."""
        self.partitions = SharedRead(
            partial(to_thread, self._read_partitions), clock, FRESH_SECONDS
        )
        """The partitions of all topics that had messages; raises KafkaUnavailable too."""
        self.health = SharedRead(partial(to_thread, self._read_health), clock, HEALTH_SECONDS)
        """The checks of both stores; a store that is away is a failed check."""
        self._searches = TenantShares(SLOW_PLACES)

    async def message_at(
        self, tenant: Hashable, topic: str, partition: int, offset: int
    ) -> str | None:
        """Return the message id in the headers of a record; None if it is missing, or not ours.

        Raises KafkaUnavailable, and Problem ``rate-limited`` while many are looked for.
        """
        with self._searches.place(tenant, "searches for a record"):
            return await to_thread(self._search, Partition(topic, partition), offset)

    def settings(self) -> Sequence[ShownSetting]:
        """Return every setting of this process, without secrets."""
        _, origin = gather(process_environment())
        return shown_settings(self._settings, origin)

    def _read_shards(self) -> Sequence[ShardState]:
        with OperatorView(self._settings.required_database_url()) as view:
            return [shard_state(row) for row in view.rows("shards")]

    def _read_partitions(self) -> Sequence[PartitionState]:
        with OperatorView(self._settings.required_database_url()) as view:
            topics = {PROGRESS_TOPIC, *view.topics()}
        self._require_kafka()
        config = self._settings.kafka_config
        log = KafkaLogReader(self._servers, config)
        now = self._clock.now().timestamp()
        return partition_states(log, self._servers, config, topics, now)

    def _read_health(self) -> Sequence[HealthCheck]:
        refused = self.refused_flush()
        flushed = health_check("prepares and ends", refused is None, refused or "none was refused")
        found = [*postgres_checks(self._settings), flushed]
        try:
            self._require_kafka()
            found += kafka_checks(self._settings, stored_topics(self._settings))
        except KafkaUnavailable as error:
            found.append(unreachable(self._servers, str(error)))
        redact = redaction(secret_texts(self._settings))
        return [replace(each, detail=redact(each.detail)) for each in found]

    def _search(self, partition: Partition, offset: int) -> str | None:
        self._require_kafka()
        reader = KafkaLogReader(self._servers, self._settings.kafka_config)
        return reader.message_at(partition, offset)

    @property
    def _servers(self) -> str:
        return self._settings.required_bootstrap_servers()

    def _require_kafka(self) -> None:
        """Raise KafkaUnavailable unless a broker answers at once; the looks wait longer."""
        if not self._kafka_answers():
            raise KafkaUnavailable(NO_ANSWER)
        KafkaTopicCatalogue(self._servers, self._settings.kafka_config).partitions()
