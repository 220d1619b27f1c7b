"""The librdkafka properties that exactly-once delivery needs, and those an operator may add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from outbox.errors import ConfigurationError, KafkaUnavailable

REQUEST_SECONDS: Final = 10.0
"""The time limit of a request for metadata."""
DELIVERY_SECONDS: Final = 8.0
"""The time that a record has until Kafka must have acknowledged it."""
TRANSACTION_SECONDS: Final = 10.0
"""The time limit that the relay asks Kafka for; a broker that allows less gives it no producer."""
WHOLE_MAX: Final = 64
"""Characters of a value that the library surely quotes as a whole."""
RECENT_SECONDS: Final = 60.0
_EXPLAINED: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})

NO_CREATION: Final[Mapping[str, Any]] = {"allow.auto.create.topics": False}
"""A producer asks for each topic by name, and a broker may then create it (Kafka's default).

A deleted topic would come back with the defaults of the broker, and take the records.
"""
PRODUCER_FIXED: Final[Mapping[str, Any]] = {
    **NO_CREATION,
    "enable.idempotence": True,
    "acks": "all",
    "max.in.flight.requests.per.connection": 5,
    "retry.backoff.ms": 1000,
    "retry.backoff.max.ms": 1000,
    "message.timeout.ms": int(DELIVERY_SECONDS * 1000),
    "topic.metadata.propagation.max.ms": 3_000,
    "partitioner": "murmur2_random",
}
"""The CLEAN rule compares a commit's time with the retry back-off: neither may be changed alone.

A deleted topic must be reported as unknown before its messages time out, because a timeout does not
show the reason.
"""
PRODUCER_DEFAULTS: Final[Mapping[str, Any]] = {
    "linger.ms": 5,
    "message.max.bytes": 1_048_588,
    "log_level": 0,
}
CONSUMER_FIXED: Final[Mapping[str, Any]] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}
CONSUMER_DEFAULTS: Final[Mapping[str, Any]] = {
    "group.id": "outbox-relay",
    "fetch.wait.max.ms": 50,
    "log_level": 0,
}
"""The library requires a group id; no consumer joins the group."""

_OURS: Final = frozenset({"bootstrap.servers", "transactional.id", "transaction.timeout.ms"})
_ALIASES: Final = {
    "request.required.acks": "acks",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "delivery.timeout.ms": "message.timeout.ms",
}


def check_kafka_config(kafka_config: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if an operator sets a property that delivery depends on."""
    for name in kafka_config:
        if _ALIASES.get(name, name) in {*PRODUCER_FIXED, *CONSUMER_FIXED, *_OURS}:
            raise ConfigurationError(f"OUTBOX_KAFKA_CONFIG: {name} is fixed by the outbox")


def refuse_unusable(config: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if no producer can have these properties; asks no broker."""
    with _usable(config):
        Producer(dict(config))


def admin_client(bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> AdminClient:
    """Return an admin client, which threads can share; it reconnects after an outage.

    A long-lived one must be polled at times: it keeps its notes, such as lost connections, in
    memory until then, without a bound while Kafka is away. Raises ConfigurationError if no client
    can have these properties.
    """
    fixed = {**NO_CREATION, "bootstrap.servers": bootstrap_servers}
    with _usable(kafka_config):
        return ExplainingAdminClient({"log_level": 0, **kafka_config, **fixed})


@contextmanager
def answered(admin: AdminClient | None = None) -> Iterator[None]:
    """Raise KafkaUnavailable for an error of Kafka, and for an answer that is too late.

    The error of an ``admin`` says why its connection was refused.
    """
    try:
        yield
    except KafkaException as error:
        text = str(error.args[0].str())
        if isinstance(admin, ExplainingAdminClient):
            with suppress(KafkaException):
                admin.poll(0)
            text = admin.refusals.explain(text)
        raise KafkaUnavailable(f"Kafka: {text}") from error
    except TimeoutError as error:
        raise KafkaUnavailable("Kafka did not answer in time") from error


class ConnectionRefusals:
    """The last refused login or handshake of a client.

    A request that fails then says only that no broker is there. The library reports the reason to a
    callback, when the client is served.
    """

    def __init__(self) -> None:
        self._last = ""
        self._at = float("-inf")

    def note(self, error: KafkaError) -> None:
        """Note an error of the client; its callback for errors."""
        if error.code() in _EXPLAINED:
            self._last, self._at = error.str(), monotonic()

    def explain(self, text: str) -> str:
        """Return the text of an error, with the refusal that explains it if there was one."""
        return f"{text}: {self._last}" if monotonic() - self._at < RECENT_SECONDS else text


class ExplainingAdminClient(AdminClient):
    """An admin client that knows why its connections were refused."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.refusals = ConnectionRefusals()
        super().__init__(config | {"error_cb": self.refusals.note})


@contextmanager
def _usable(config: Mapping[str, Any]) -> Iterator[None]:
    """Raise ConfigurationError for properties that the library refuses, without their values.

    The library quotes a value, or one of a list, and cuts a long one: it may be a misplaced secret.
    Then only the names of the properties are shown.
    """
    try:
        yield
    except KafkaException as error:
        reason = str(error.args[0].str())
        values = [str(value) for name, value in config.items() if name != "bootstrap.servers"]
        parts = [part[:WHOLE_MAX] for value in values for part in (value, *value.split(","))]
        if any(part.strip() and part in reason for part in parts):
            names = sorted(name for name in config if name in reason)
            reason = f"librdkafka refuses the value of {' or '.join(names)}"
        raise ConfigurationError(f"OUTBOX_KAFKA_CONFIG: {reason}") from None


def producer_config(
    bootstrap_servers: str, kafka_config: Mapping[str, Any], transactional_id: str
) -> dict[str, Any]:
    """Return the properties of a shard's producer. Raises ConfigurationError."""
    check_kafka_config(kafka_config)
    return {
        **PRODUCER_DEFAULTS,
        **kafka_config,
        **PRODUCER_FIXED,
        "bootstrap.servers": bootstrap_servers,
        "transaction.timeout.ms": int(TRANSACTION_SECONDS * 1000),
        "transactional.id": transactional_id,
    }


def consumer_config(bootstrap_servers: str, kafka_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of the consumer of manifests. Raises ConfigurationError."""
    check_kafka_config(kafka_config)
    return {
        **CONSUMER_DEFAULTS,
        **kafka_config,
        **CONSUMER_FIXED,
        "bootstrap.servers": bootstrap_servers,
    }


def transactional_id(installation: object, shard: int, number: int) -> str:
    """Return a transactional id of a shard; it is never random, because the fence needs it.

    ``number`` counts those that the shard has left (``LeaveTransactionalId``).
    """
    return f"outbox.{installation}.{shard}.{number}"
