"""Who shares limits: the keys of the same groups, or one key of all groups."""

from __future__ import annotations

from outbox.access import Caller


def caller(key_id: str, *groups: str) -> Caller:
    """Return the caller of a key; without groups it is bound to none."""
    return Caller(key_id=key_id, scopes=frozenset(), groups=frozenset(groups) or None)


def test_keys_of_the_same_groups_are_one_tenant() -> None:
    assert caller("a", "billing", "orders").tenant == caller("b", "orders", "billing").tenant
    assert caller("a", "billing").tenant != caller("a", "orders").tenant


def test_a_key_of_all_groups_is_a_tenant_of_its_own() -> None:
    assert caller("a").tenant == caller("a").tenant
    assert caller("a").tenant != caller("b").tenant
