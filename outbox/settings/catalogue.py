"""The catalogue of settings: name, type, unit, default and meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic import model_validator as validator

from outbox.errors import ConfigurationError
from outbox.settings.formats import json_object, long_enough, words
from outbox.settings.postgres_address import postgres_address

Words = Annotated[tuple[str, ...], BeforeValidator(words)]


JsonObject = Annotated[dict[str, Any], BeforeValidator(json_object)]


Pepper = Annotated[SecretStr, AfterValidator(long_enough)]


PostgresAddress = Annotated[SecretStr, AfterValidator(postgres_address)]


class Settings(BaseModel):
    """The whole configuration; names of numbers end in their unit, secrets (s) are SecretStr."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", str_strip_whitespace=True, use_attribute_docstrings=True
    )

    database_url: PostgresAddress | None = None
    """(s) PostgreSQL 15 or later, postgresql://…"""
    database_pool_max: int = Field(10, ge=2, le=1000)
    """connections per process"""
    kafka_bootstrap_servers: Words = ()
    """brokers, comma separated"""
    kafka_config: JsonObject = Field(default_factory=dict, repr=False)
    """(s) librdkafka properties; those that delivery depends on are refused"""

    http_bind: str = "127.0.0.1:8080"
    """address on which the API listens"""
    http_workers: int = Field(1, ge=1, le=64)
    """number of API processes"""

    auth_mode: Literal["keys", "dev-insecure"] = "keys"
    """`dev-insecure` needs no keys and starts only on a loopback bind"""
    auth_pepper: Pepper | None = None
    """(s) HMAC key for API keys, at least 16 characters; required with `keys`"""
    encryption_keys: SecretStr | None = None
    """(s) keys of check secrets: base64 of 32 bytes each, comma separated; the first encrypts"""
    rate_prepare_per_second: int = Field(0, ge=0)
    """limit of prepares per API key; 0 = no limit"""
    rate_read_per_second: int = Field(0, ge=0)
    """limit of reads per API key; 0 = no limit"""

    check_interval_seconds: int = Field(30, ge=1, le=86_400)
    """time between two checks (RocketMQ transactionCheckInterval: 30 s, before 5.1.1 60 s)"""
    check_max: int = Field(15, ge=1, le=1000)
    """spent checks before `on_check_max` (RocketMQ transactionCheckMax)"""
    transaction_timeout_seconds: int = Field(6, ge=1, le=3600)
    """age before the first check (RocketMQ transactionTimeOut)"""
    max_age_seconds: int = Field(259_200, ge=60, le=2_592_000)
    """older undecided messages are parked; below RETENTION_SECONDS (RocketMQ fileReservedTime)"""
    check_allow_cidrs: Words = ()
    """networks that checks may reach although they are not globally routable"""
    check_allow_hosts: Words = ()
    """host names that may resolve to such networks"""
    check_allow_ports: Words = ("80", "443", "1024-65535")
    """ports that a check URL may have"""
    check_proxy_url: SecretStr | None = None
    """(s) egress proxy for checks"""

    checker_metrics_bind: str = "127.0.0.1:9464"
    """address on which the checker serves /metrics"""
    metrics_bind: str | None = None
    """separate address for the API's /metrics"""

    relay_allow_kafka_release: bool = False
    """publish on Kafka 4.3 or newer to topics of fewer than three replicas (KAFKA-20734)"""

    create_topics: bool = False
    """create a missing topic at prepare, with the broker's defaults"""
    reject_half_messages: bool = False
    """refuse every prepare; ends and checks continue (RocketMQ rejectTransactionMessage)"""
    retention_seconds: int = Field(604_800, ge=60)
    """time for which published and rolled back messages are kept"""

    reconcile_grace_seconds: int = Field(300, ge=0)
    """age from which an unpublished commit counts as overdue"""
    reconcile_replica_url: PostgresAddress | None = None
    """(s) hot standby that an audit reads: [how](../audit.md#what-it-needs)"""
    reconcile_spark_master: str = "local[*]"
    """Spark master"""
    reconcile_spark_remote: SecretStr | None = None
    """(s) `sc://…`: a Spark Connect server instead of the master; the audit starts no JVM"""
    reconcile_spark_conf: JsonObject = Field(default_factory=dict, repr=False)
    """additional Spark settings, a JSON object; those named like a secret are never shown"""
    reconcile_jars_dir: Path | None = None
    """folder of the connector jars; default: the jars from `make setup`"""
    reconcile_report_dir: Path = Path("reports")
    """folder of the reports"""
    reconcile_stage_uri: str | None = None
    """where runs stage Parquet, at `/<installation>/<run>`; default: in the report folder"""
    reconcile_topic_rules: JsonObject = Field(default_factory=dict)
    """by topic or prefix: `{"invoices.": {"ordered": false}}`; see `audit.md`"""
    reconcile_exclude_topics: Words = ()
    """topics that an audit does not read"""

    ui_trace_url: str | None = Field(
        None, max_length=2048, pattern=r"^https?://[^\s{}\"'<>]+\{trace_id\}[^\s{}\"'<>]*$"
    )
    """address of a trace viewer, with `{trace_id}` in it; the page of a message links there"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """lowest level that is written"""
    api_url: str | None = None
    """URL of the service for the command line; no check goes there"""
    api_key: SecretStr | None = None
    """(s) API key of the command line"""

    @validator(mode="after")
    def _ages_fit(self) -> Self:
        if self.max_age_seconds >= self.retention_seconds:
            raise ValueError("OUTBOX_MAX_AGE_SECONDS must be below OUTBOX_RETENTION_SECONDS")
        return self

    def required_database_url(self) -> str:
        """Return the database URL; raises ConfigurationError when it is not set."""
        if self.database_url is None:
            raise ConfigurationError("OUTBOX_DATABASE_URL is not set")
        return self.database_url.get_secret_value()

    def required_bootstrap_servers(self) -> str:
        """Return Kafka's addresses, comma separated; raises ConfigurationError when not set."""
        if not self.kafka_bootstrap_servers:
            raise ConfigurationError("OUTBOX_KAFKA_BOOTSTRAP_SERVERS is not set")
        return ",".join(self.kafka_bootstrap_servers)


SECRETS: Final = frozenset(
    {
        "database_url",
        "kafka_config",
        "auth_pepper",
        "encryption_keys",
        "check_proxy_url",
        "reconcile_replica_url",
        "reconcile_spark_remote",
        "api_key",
    }
)
