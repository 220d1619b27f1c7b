"""The settings of the API and the checker under `outbox dev`.

The caller's OUTBOX_ settings apply too (a shorter check interval, a log level), except where
`outbox dev` decides itself: addresses and secrets.
"""

from collections.abc import Mapping

from cli.dev.data_dir import DataDir
from devservers.loopback import LOOPBACK

DEFAULTS: Mapping[str, str] = {
    "OUTBOX_CREATE_TOPICS": "true",
    "OUTBOX_CHECK_ALLOW_CIDRS": "127.0.0.0/8,::1/128",
    # A starting broker is found at once, not after a back-off that has grown.
    "OUTBOX_KAFKA_CONFIG": '{"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}',
}


def program_environment(
    inherited: Mapping[str, str],
    data_dir: DataDir,
    *,
    database_url: str,
    bootstrap_servers: str,
    ports: Mapping[str, int],
    auth: str,
) -> dict[str, str]:
    """Return the whole environment of the programs."""
    own = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "OUTBOX_HTTP_BIND": f"{LOOPBACK}:{ports['api']}",
        "OUTBOX_CHECKER_METRICS_BIND": f"{LOOPBACK}:{ports['checker_metrics']}",
        "OUTBOX_AUTH_MODE": auth,
        "OUTBOX_AUTH_PEPPER": data_dir.secret("auth_pepper"),
        "OUTBOX_ENCRYPTION_KEYS": data_dir.secret("encryption_keys"),
    }
    return {**DEFAULTS, **_without(inherited, own), **own}


def _without(inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Drop what `own` replaces, including the `_FILE` forms of the names."""
    dropped = {*own, *(f"{name}_FILE" for name in own)}
    return {name: value for name, value in inherited.items() if name not in dropped}
