"""Every text in the settings that must not be shown: whole secrets, and the parts of passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from pydantic import SecretStr

from outbox.settings.catalogue import Settings

SHORTEST: Final = 6
"""A shorter part is a word that stands in many texts."""
_PASSWORD: Final = re.compile(r"://([^:/@]*):(.*)@([^/?]*)")
_SEPARATORS: Final = re.compile(r"[/@:?#&%=;, ]+")
_NAMES: Final = re.compile(r"pass|secret|token|credential|jaas|key|\bsas\b", re.IGNORECASE)


def secret_texts(settings: Settings) -> frozenset[str]:
    """Return the secret texts of the settings.

    Parts of a password count too: a library that misreads a URL may quote a part of it.
    """
    found = {part for _, value in settings for part in _parts(value)}
    return frozenset(text for text in found if len(text) >= SHORTEST)


def names_a_secret(property_name: str) -> bool:
    """Return whether a property of a library, such as Kafka's or Spark's, is named as a secret."""
    return _NAMES.search(property_name) is not None


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield from _of_text(value.get_secret_value())
    elif isinstance(value, Mapping):
        for name, text in value.items():
            if isinstance(text, str) and names_a_secret(name):
                yield from _of_text(text)


def _of_text(text: str) -> Iterator[str]:
    yield text
    url = _PASSWORD.search(text)
    if url is None:
        return
    user, password, host = url.groups()
    parts = {password, unquote(password), *_SEPARATORS.split(password)}
    yield from parts - {user, host.partition(":")[0]}
