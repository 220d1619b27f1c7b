"""The relay's step without one rule."""

from __future__ import annotations

from msgspec.structs import replace

from outbox.messages.manifest import Manifest
from outbox.relay.protocol.actions import Compare
from outbox.relay.protocol.answers import Answer, Compared
from outbox.relay.protocol.state import Relay
from outbox.relay.protocol.step import step
from outbox.relay.protocol.transition import Next


def cursor_only(state: Relay, answer: Answer) -> Next:
    """Believe every manifest without reading the commit log."""
    after, plan = step(state, answer)
    while len(plan) == 1 and isinstance(plan[0], Compare):
        after, plan = step(*agreed(after, plan[0].manifest))
    return after, plan


def agreed(state: Relay, manifest: Manifest) -> tuple[Relay, Compared]:
    """Return a comparison that agrees with the manifest."""
    cursor = state.at._replace(position=manifest.after)
    ids = tuple(entry.message_id for entry in manifest.entries)
    return replace(state, cursor=cursor), Compared(ids, True, frozenset(ids))
