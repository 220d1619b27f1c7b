"""Reads settings from flags, the environment and a file; only this module reads the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from outbox.errors import ConfigurationError
from outbox.settings.catalogue import SECRETS, Settings

PREFIX: Final = "OUTBOX_"
NO_SETTINGS: Final = frozenset({"OUTBOX_CHECK_SECRET", "OUTBOX_CONFIG_FILE", "OUTBOX_FAILPOINTS"})
"""Variables of the same prefix: of a producer's own program, of the file, and of crash tests."""
UNKNOWN: Final = "docs/reference/settings.md lists all settings"
"""The next step after a name that no setting has."""
FOREIGN: Final = re.compile(
    "(PG|KAFKA_|SPARK_|PYSPARK_)[A-Z_]+|PYTHONPATH|PYTHONHOME|CLASSPATH"
    "|(_JAVA|JDK_JAVA|JAVA_TOOL)_OPTIONS"
)
"""What a user has set for other servers and programs; ours and `outbox dev` are made of the same
libraries."""
OTLP_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def load_settings(
    environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings from flags, environment and configuration file.

    Raises ConfigurationError with one line that names the setting and the problem.
    """
    values, _ = gather(os.environ if environment is None else environment)
    values.update(overrides or {})
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{PREFIX}{part}: ".upper() for part in first["loc"][:1])
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"{where}{problem}") from None


def gather(environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values from environment and file, and the origin of each."""
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    path = environment.get("OUTBOX_CONFIG_FILE")
    for name, value in (_from_file(path) if path else {}).items():
        values[name], origin[name] = value, str(path)
    for key, text in environment.items():
        if key.startswith(PREFIX) and key not in NO_SETTINGS:
            name, value = _from_environment(key, text, environment)
            values[name], origin[name] = value, key
    return values, origin


def traces_are_sent(environment: Mapping[str, str]) -> bool:
    """Return True if OpenTelemetry's own variables name a collector, to which OTLP goes by HTTP."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if disabled or environment.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return False
    return any(environment.get(name, "").strip() for name in OTLP_ENDPOINTS)


def failpoints() -> str | None:
    """Return the named points where a process dies, for crash tests."""
    return os.environ.get("OUTBOX_FAILPOINTS")


def process_environment() -> dict[str, str]:
    """Return a copy of this process's environment, for a child process."""
    return dict(os.environ)


def drop_variables(names: re.Pattern[str] = FOREIGN) -> None:
    """Take variables from this process, and so from its children.

    Those for other servers: where it runs, or asks, only servers of its own.
    """
    for name in filter(names.fullmatch, [*os.environ]):
        del os.environ[name]


def _from_environment(key: str, text: str, environment: Mapping[str, str]) -> tuple[str, Any]:
    name = key.removeprefix(PREFIX).lower()
    if name in Settings.model_fields:
        return name, text
    secret = name.removesuffix("_file")
    if secret == name or secret not in SECRETS:
        raise ConfigurationError(f"{key}: no such setting; {UNKNOWN}")
    if PREFIX + secret.upper() in environment:
        raise ConfigurationError(f"{key}: {PREFIX}{secret.upper()} is set as well; use one of them")
    return secret, _read(key, text).strip()


def _from_file(path: str) -> dict[str, Any]:
    try:
        values = tomllib.loads(_read("OUTBOX_CONFIG_FILE", path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"OUTBOX_CONFIG_FILE: {path}: {error}") from None
    lowered = {name.lower(): value for name, value in values.items()}
    unknown = sorted(set(lowered) - set(Settings.model_fields))
    if unknown:
        raise ConfigurationError(
            f"OUTBOX_CONFIG_FILE: {path}: no such setting {unknown[0]!r}; {UNKNOWN}"
        )
    return lowered


def _read(key: str, path: str) -> str:
    """Return the text of a file; an error shows no path, which may be a misplaced secret."""
    try:
        return Path(path).read_text("utf-8-sig")
    except OSError as error:
        line = f"{key}: cannot read the file that it names: {error.strerror}"
        raise ConfigurationError(line) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{key}: the file that it names is not text in UTF-8") from None
