"""Which methods a path takes, by the contract: what a 405 lists in ``Allow`` (RFC 9110 15.5.6)."""

from __future__ import annotations

import re
from typing import Any

_PARAMETER = re.compile(r"\\\{[^/]+\\\}")


class AllowedMethods:
    """The methods of every path of an OpenAPI document; a literal path goes before a template."""

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
        """Return the methods of a path as ``Allow`` lists them; None for one that is not there."""
        return next((methods for form, methods in self._paths if form.fullmatch(path)), None)
