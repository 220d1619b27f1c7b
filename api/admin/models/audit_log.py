"""The wire models of the audit log."""

from __future__ import annotations

from api.admin.models.base import GroupName
from api.admin.models.page import PageQuery
from api.http.wire_types import MessageId, Moment, TopicText, Word


class AuditQuery(PageQuery):
    """The filters of a list, and its page; an entry must match all of them.

    ``producer_group``, ``topic`` and ``transaction_id`` are those of the entry's message; entries
    about a group match its name too. ``at_from`` and ``at_to`` bound the time of the entry.
    """

    action: Word | None = None
    operator: Word | None = None
    key_id: Word | None = None
    message_id: MessageId | None = None
    producer_group: GroupName | None = None
    topic: TopicText | None = None
    transaction_id: Word | None = None
    at_from: Moment | None = None
    at_to: Moment | None = None
