"""The catalogue of settings: name, type, unit, default and meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic import model_validator as validator

from outbox.errors import ConfigurationError
from outbox.settings.formats import json_object, limits, long_enough, words
from outbox.settings.postgres_address import postgres_address

Words = Annotated[tuple[str, ...], BeforeValidator(words)]


JsonObject = Annotated[dict[str, Any], BeforeValidator(json_object)]


Limits = Annotated[dict[str, int], BeforeValidator(limits)]


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
    http_max_body_bytes: int = Field(1_048_576, ge=1024)
    """largest body of a single call"""
    http_max_batch_bytes: int = Field(8_388_608, ge=1024)
    """largest body of a batch call"""
    http_max_inflight: int = Field(1000, ge=1)
    """concurrent requests; above it prepares and reads get 503, ends are still accepted"""
    message_max_bytes: int = Field(1_000_000, ge=1)
    """largest size of key, value and caller headers, decoded"""

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
    check_timeout_seconds: int = Field(5, ge=1, le=30)
    """time limit of a whole check call"""
    transaction_timeout_seconds: int = Field(6, ge=1, le=3600)
    """age before the first check (RocketMQ transactionTimeOut)"""
    max_age_seconds: int = Field(259_200, ge=60, le=2_592_000)
    """older undecided messages are parked; below RETENTION_SECONDS (RocketMQ fileReservedTime)"""
    check_max_inflight_per_group: int = Field(8, ge=1, le=256)
    """concurrent checks per group, for groups that do not set it"""
    check_max_inflight: int = Field(256, ge=1, le=10_000)
    """concurrent checks per checker"""
    check_batch_max: int = Field(100, ge=1, le=100)
    """ids per batch check"""
    check_allow_cidrs: Words = ()
    """networks that checks may reach although they are not globally routable"""
    check_allow_hosts: Words = ()
    """host names that may resolve to such networks"""
    check_allow_ports: Words = ("80", "443", "1024-65535")
    """ports that a check URL may have"""
    check_https_only: bool = False
    """refuse http without TLS for every check URL"""
    check_proxy_url: SecretStr | None = None
    """(s) egress proxy for checks"""

    checker_only: Words = ()
    """tasks to run (relay, check, sweep, retire); empty = all"""
    checker_heartbeat_seconds: int = Field(5, ge=1, le=300)
    """time between heartbeats; after three missed ones /readyz fails"""
    checker_metrics_bind: str = "127.0.0.1:9464"
    """address on which the checker serves /metrics"""
    metrics_bind: str | None = None
    """separate address for the API's /metrics"""

    relay_batch_max: int = Field(2000, ge=1, le=4096)
    """records in one Kafka transaction"""
    relay_transactional_id_prefix: str = Field("outbox", min_length=1, max_length=64)
    """first part of each transactional.id"""
    relay_allow_kafka_release: bool = False
    """publish on Kafka 4.3 or newer to topics of fewer than three replicas (KAFKA-20734)"""
    failpoints: str | None = None
    """named points where a process dies, for crash tests"""

    create_topics: bool = False
    """create a missing topic at prepare, with the broker's defaults"""
    reject_half_messages: bool = False
    """refuse every prepare; ends and checks continue (RocketMQ rejectTransactionMessage)"""
    parked_topic: str | None = None
    """topic for copies of parked messages"""
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
    reconcile_report_samples: int = Field(50, ge=1, le=1000)
    """listed findings per class in a report"""
    reconcile_stage_uri: str | None = None
    """target of Parquet files; default: below the report folder"""
    reconcile_show_keys: bool = False
    """show keys in reports, not their hash"""
    reconcile_fail_on: Literal["info", "low", "medium", "high", "critical"] = "low"
    """exit 7 for findings of this severity or higher"""
    reconcile_max: Limits = Field(default_factory=dict)
    """tolerated findings, by kind or class: `missing=0,duplicate=10`; exit 0 within the limits"""
    reconcile_snapshot_max_seconds: int = Field(3600, ge=60)
    """a longer run fails, nothing stored; before PostgreSQL 17 only a pause of that length does"""
    reconcile_statement_timeout_seconds: int = Field(600, ge=1)
    """time limit of one statement of a run"""
    reconcile_pg_connections: int = Field(4, ge=1, le=16)
    """connections of Spark to PostgreSQL; each reads a part of the 16 shards"""
    reconcile_topic_rules: JsonObject = Field(default_factory=dict)
    """by topic or prefix: `{"invoices.": {"ordered": false}}`; see `audit.md`"""
    reconcile_keep_days: int = Field(90, ge=1)
    """days for which closed findings are kept"""
    reconcile_stage_keep_seconds: int = Field(604_800, ge=3600)
    """age at which the stages of killed runs are deleted; longer than any run"""
    reconcile_mode: Literal["auto", "two_level", "full"] = "auto"
    """`two_level` joins differing buckets, `full` joins all; `auto`: two_level from 1 million on"""
    reconcile_bucket_messages: int = Field(1024, ge=1, le=1_048_576)
    """approximate messages per bucket; with many faults, smaller buckets leave less to join"""
    reconcile_exclude_topics: Words = ()
    """topics that an audit does not read"""

    ui_enabled: bool = True
    """serve the console"""
    ui_prefix: str = Field("/ui", pattern=r"^(/[a-z0-9-]+)+$")
    """path of the console"""
    ui_trace_url: str | None = Field(
        None, max_length=2048, pattern=r"^https?://[^\s{}\"'<>]+\{trace_id\}[^\s{}\"'<>]*$"
    )
    """address of a trace viewer, with `{trace_id}` in it; the page of a message links there"""
    docs_enabled: bool = True
    """serve /docs"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """lowest level that is written"""
    log_format: Literal["json", "console"] = "json"
    """`json`, or `console` for reading in a terminal"""
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
