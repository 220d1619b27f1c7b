"""The settings as people may see them: secrets are hidden, by name and by value. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import SecretStr

from outbox.operators.store_view import ShownSetting
from outbox.settings.catalogue import SECRETS, Settings
from outbox.settings.secret_texts import names_a_secret, secret_texts
from outbox.telemetry.redaction import HIDDEN, Redaction, redaction


def shown_settings(settings: Settings, origin: Mapping[str, str]) -> Sequence[ShownSetting]:
    """Return each setting; ``origin`` names where a value came from, by the setting's name."""
    redact = redaction(secret_texts(settings))
    return [
        ShownSetting(
            setting=f"OUTBOX_{name.upper()}",
            value=_shown(name, value, redact),
            source=origin.get(name, "default"),
        )
        for name, value in settings
    ]


def _shown(name: str, value: object, redact: Redaction) -> object:
    if name in SECRETS or isinstance(value, SecretStr):
        return HIDDEN if value else value
    if isinstance(value, tuple | list):
        return [redact(str(each)) for each in value]
    if isinstance(value, dict):
        return {key: _property(key, each, redact) for key, each in value.items()}
    return value if value is None or isinstance(value, int | float) else redact(str(value))


def _property(name: str, value: object, redact: Redaction) -> object:
    hidden = type(value) in (str, int, float) and names_a_secret(name)
    return HIDDEN if hidden else _shown("", value, redact)
