"""The methods of a path by the contract; a 405 lists them in ``Allow`` (RFC 9110 15.5.6)."""

from __future__ import annotations

import re
from typing import Any

_PARAMETER = re.compile(r"\\\{[^/]+\\\}")


class AllowedMethods:
    """The methods of every path of an OpenAPI document; a literal path wins over a template."""

    def __init__(self, document: dict[str, Any]) -> None:
        paths = sorted(document["paths"].items(), key=lambda each: each[0].count("{"))
        self._paths = [
            (
                re.compile(_PARAMETER.sub("[^/]+", re.escape(path))),
                ", ".join(sorted(methods)).upper(),
            )
            for path, methods in paths
        ]

    def of(self, path: str) -> str | None:
        """Return the methods of a path in the form of ``Allow``; None for an unknown path."""
        return next((methods for pattern, methods in self._paths if pattern.fullmatch(path)), None)
