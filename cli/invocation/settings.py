"""The settings of commands that use the database or Kafka directly."""

from cli.invocation.dev_state import running_state
from outbox.errors import ConfigurationError
from outbox.settings.catalogue import Settings
from outbox.settings.environment import drop_variables, load_settings


def settings_or_dev() -> Settings:
    """Return the settings; without a database URL, with the addresses of a running `outbox dev`.

    Raises ConfigurationError.
    """
    settings = load_settings()
    state = running_state() if settings.database_url is None else None
    if state is None:
        return settings
    drop_variables()
    return load_settings(
        overrides={
            "database_url": state.database_url,
            "kafka_bootstrap_servers": state.kafka_bootstrap_servers,
            "kafka_config": "{}",  # its secrets are for other brokers
            "api_url": settings.api_url or state.api_url,
        }
    )


def database_url() -> str:
    """Return the database's URL; raises ConfigurationError naming both ways to set it."""
    settings = settings_or_dev()
    if settings.database_url is None:
        raise ConfigurationError(
            "OUTBOX_DATABASE_URL is not set, and no `outbox dev` runs in this folder"
        )
    return settings.required_database_url()
