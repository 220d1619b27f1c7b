"""Shrinking keeps only faults that were seen to break, within its tries."""

from __future__ import annotations

from chaos.schedule import Fault
from chaos.shrink import Faults, smaller


def faults(count: int) -> Faults:
    """Return so many different faults."""
    return tuple(Fault(at=float(n), kind="kill", target="api-0") for n in range(count))


def test_a_single_guilty_fault_is_found() -> None:
    whole = faults(32)
    assert smaller(whole, lambda some: whole[13] in some, tries=100) == (whole[13],)


def test_two_guilty_faults_that_need_each_other_are_found() -> None:
    whole = faults(16)
    guilty = {whole[2], whole[11]}
    assert set(smaller(whole, lambda some: guilty <= set(some), tries=200)) == guilty


def test_it_stops_after_its_tries() -> None:
    tried: list[Faults] = []

    def breaks(some: Faults) -> bool:
        tried.append(some)
        return False

    whole = faults(64)
    assert smaller(whole, breaks, tries=5) == whole
    assert len(tried) == 5
