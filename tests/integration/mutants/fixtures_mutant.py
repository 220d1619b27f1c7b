"""A mutant of the product: a text in its correct and its broken form, and the test that must fail.

``promise`` says what users rely on and the broken form does not keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WITHOUT_SERVERS: Final = (
    "tests/unit/",
    "tests/integration/http_checks/",
    "tests/integration/client/test_send_in_transaction.py",
)


@dataclass(frozen=True, kw_only=True)
class ProductMutant:
    """One replaced text of one file, and the node id of its killer."""

    promise: str
    file: str
    rule: str
    broken: str
    killer: str

    @property
    def needs_postgres(self) -> bool:
        """Whether the killer runs on a PostgreSQL server."""
        return not self.killer.startswith(WITHOUT_SERVERS)
