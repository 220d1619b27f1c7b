"""Builds the hot routes: prepare and end on PostgreSQL's half store and Kafka's topics."""

from __future__ import annotations

from functools import partial
from typing import Final

from api.http.admission import BODY_MAX_BYTES
from api.http.rate_limits import RateLimit
from api.ingest.batcher import MicroBatcher
from api.ingest.ends import Ends
from api.ingest.hot_routes import HotRoutes
from api.ingest.ingest_metrics import IngestMetrics
from api.ingest.name_cache import NameCache
from api.ingest.prepare_rules import traceparent_of
from api.ingest.prepares import Prepares
from api.ingest.publication_wait import PublicationWait
from api.ingest.topic_cache import TopicCache
from api.ingest.watched_flushes import WatchedFlushes
from outbox.clock import SystemClock
from outbox.kafka.topic_catalogue import KafkaTopicCatalogue
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.interned_names import PostgresInternedNames
from outbox.postgres.messages.message_status import statuses_now
from outbox.postgres.messages.seen_topics import PostgresSeenTopics
from outbox.postgres.sessions.connections import Pool
from outbox.settings.catalogue import Settings
from outbox.telemetry.metrics import Metrics

FLUSHES: Final = ("prepare", "end")
WAITING_ROWS: Final = 40_000
"""Prepares that may wait for a flush, one tenant's half of them about one second at the measured
rates."""


class IngestWiring:
    """The parts of prepare and end."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        metrics: Metrics,
        catalogue: KafkaTopicCatalogue | None,
    ) -> None:
        """Build the parts; ``catalogue`` replaces Kafka's list of topics."""
        self._settings = settings
        self.pool = pool
        self.metrics = metrics
        clock = SystemClock()
        servers, config = settings.required_bootstrap_servers(), settings.kafka_config
        self.topic_cache = TopicCache(
            catalogue or KafkaTopicCatalogue(servers, config),
            clock,
            create=settings.create_topics,
            seen=PostgresSeenTopics(pool).all,
        )
        self.name_cache = NameCache(PostgresInternedNames(pool), clock)
        store, seconds = PostgresHalfStore(pool), metrics["db_tx_duration_seconds"].labels
        self._watched = prepares, ends = [WatchedFlushes(kind, clock) for kind in FLUSHES]
        self._prepares = MicroBatcher(
            prepares.watch(store.prepare), seconds("prepare").observe, WAITING_ROWS
        )
        self._ends = MicroBatcher(ends.watch(store.end), seconds("end").observe)

    def hot_routes(self, *, traced: bool) -> HotRoutes:
        """Return the routes; ``traced``: a prepare stores the context of its own span."""
        names, counted = self.name_cache, IngestMetrics(self.metrics, self.name_cache)
        publications = PublicationWait(partial(statuses_now, self.pool))
        settings = self._settings
        rate = settings.rate_prepare_per_second / settings.http_workers
        return HotRoutes(
            Prepares(
                self._prepares,
                names,
                self.topic_cache,
                counted,
                refuse_all=settings.reject_half_messages,
            ),
            Ends(self._ends, names, publications, counted),
            RateLimit("prepare", rate, SystemClock()),
            BODY_MAX_BYTES,
            _own_or_given if traced else traceparent_of,
        )

    def refusal(self) -> str | None:
        """Return PostgreSQL's words if it refused the last prepares or ends; otherwise None."""
        return next(filter(None, (each.refusal() for each in self._watched)), None)

    async def drain(self) -> None:
        """Flush everything that was accepted."""
        await self._prepares.drain()
        await self._ends.drain()


def _own_or_given(header: str | None) -> str | None:
    """Return the context of the span of this request, or if it is not recorded the caller's."""
    from outbox.telemetry.spans import recorded_traceparent

    return recorded_traceparent() or traceparent_of(header)
