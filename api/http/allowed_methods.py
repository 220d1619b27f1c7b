"""The methods of a path by the contract; a 405 lists them in ``Allow`` (RFC 9110 15.5.6)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_PARAMETER = re.compile(r"\\\{[^/]+\\\}")


class AllowedMethods:
    """The methods of every path; a literal path wins over a template."""

    def __init__(self, methods_of: Mapping[str, Sequence[str]]) -> None:
        paths = sorted(methods_of.items(), key=lambda each: each[0].count("{"))
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
