"""Bounds slow work for operators, so that what one tenant asks for leaves room for another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from api.http.problems import Problem

RETRY_SECONDS = 5


class TenantSlots:
    """Some slots of a process; a tenant takes only a part of them."""

    def __init__(self, what: str, *, of_a_tenant: int, in_all: int) -> None:
        self._what = what
        self._of_a_tenant = of_a_tenant
        self._in_all = in_all
        self._taken: list[Hashable] = []

    @contextmanager
    def taken_by(self, tenant: Hashable) -> Iterator[None]:
        """Hold a slot for the block. Raises Problem ``rate-limited`` if none is free."""
        if len(self._taken) >= self._in_all or self._taken.count(tenant) >= self._of_a_tenant:
            detail = f"at most {self._of_a_tenant} {self._what} of a caller at a time, "
            detail += f"and {self._in_all} in all"
            raise Problem(slug="rate-limited", detail=detail, retry_after_seconds=RETRY_SECONDS)
        self._taken.append(tenant)
        try:
            yield
        finally:
            self._taken.remove(tenant)
