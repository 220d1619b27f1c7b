"""Builds the view of the whole installation, which reads both stores for operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from api.admin.shared_view import SharedStoreView
from api.ingest.topic_cache import TopicCache
from outbox.clock import Clock, SystemClock
from outbox.errors import KafkaUnavailable
from outbox.kafka.health.kafka_checks import kafka_checks, unreachable
from outbox.kafka.health.partition_states import partition_states
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.operators.health_check import HealthCheck
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
AWAY_SECONDS: Final = 5.0
"""How long a cluster that did not answer is not asked again."""


def shared_store_view(settings: Settings, topics: TopicCache, clock: Clock) -> SharedStoreView:
    """Return the view of these settings' stores."""
    view = StoresView(settings, lambda: topics.reachable)
    return SharedStoreView(view, redaction(secret_texts(settings)), clock)


class StoresView:
    """The StoreView of these settings; each look at PostgreSQL has a session of its own.

    Kafka's clients are kept, because a new one costs a look most of its time. After a failure new
    ones are made: an old one waits before it connects again.
    ``kafka_answers`` is what the process knows already: a cluster that is away costs no wait.
    """

    def __init__(self, settings: Settings, kafka_answers: Callable[[], bool]) -> None:
        self._settings = settings
        self._kafka_answers = kafka_answers
        self._away_until = float("-inf")
        self._catalogue: KafkaTopicCatalogue | None = None
        self._log: KafkaLogReader | None = None

    def shards(self) -> Sequence[ShardState]:
        """Return every shard; see StoreView.shards."""
        with OperatorView(self._settings.required_database_url()) as view:
            return [shard_state(row) for row in view.shards()]

    def partitions(self) -> Sequence[PartitionState]:
        """Return the partitions; see StoreView.partitions."""
        with OperatorView(self._settings.required_database_url()) as view:
            topics = {PROGRESS_TOPIC, *view.topics()}
        self._require_kafka()
        config = self._settings.kafka_config
        log = self._log = self._log or KafkaLogReader(self._servers, config)
        now = SystemClock().now().timestamp()
        try:
            return partition_states(log, self._servers, config, topics, now)
        except KafkaUnavailable:
            self._log = None
            raise

    def health(self) -> Sequence[HealthCheck]:
        """Return the checks of both stores; see StoreView.health."""
        found = [*postgres_checks(self._settings)]
        try:
            self._require_kafka()
        except KafkaUnavailable as error:
            return [*found, unreachable(self._servers, str(error))]
        return [*found, *kafka_checks(self._settings, stored_topics(self._settings))]

    def message_at(self, topic: str, partition: int, offset: int) -> str | None:
        """Return the message of a record; see StoreView.message_at."""
        self._require_kafka()
        reader = KafkaLogReader(self._servers, self._settings.kafka_config)
        return reader.message_at(Partition(topic, partition), offset)

    def settings(self) -> Sequence[ShownSetting]:
        """Return every setting; see StoreView.settings."""
        _, origin = gather(process_environment())
        return shown_settings(self._settings, origin)

    @property
    def _servers(self) -> str:
        return self._settings.required_bootstrap_servers()

    def _require_kafka(self) -> None:
        """Raise KafkaUnavailable unless a broker answers at once; the checks wait longer."""
        now = SystemClock().monotonic()
        if not self._kafka_answers() or now < self._away_until:
            raise KafkaUnavailable(NO_ANSWER)
        config = self._settings.kafka_config
        catalogue = self._catalogue or KafkaTopicCatalogue(self._servers, config)
        try:
            catalogue.partitions()
        except KafkaUnavailable:
            self._catalogue = None
            self._away_until = SystemClock().monotonic() + AWAY_SECONDS
            raise
        self._catalogue = catalogue
