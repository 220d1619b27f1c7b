"""Points: the message id and the points are written in one transaction, so a repeat has no effect.

Kafka delivers at least once to a consumer that stores its results elsewhere. The primary key of
``point_grant`` on ``outbox_message_id`` makes it exactly once here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

CREATE_TABLES = """
CREATE TABLE IF NOT EXISTS member_points (
  member text PRIMARY KEY,
  points bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS point_grant (
  message_id  text PRIMARY KEY,
  purchase_id text NOT NULL,
  member      text NOT NULL,
  points      bigint NOT NULL
)"""

GRANT_ONCE = """
WITH fresh AS (
  INSERT INTO point_grant (message_id, purchase_id, member, points)
  VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING
  RETURNING member, points
)
INSERT INTO member_points AS total (member, points)
SELECT member, points FROM fresh
ON CONFLICT (member) DO UPDATE SET points = total.points + excluded.points"""


@dataclass(frozen=True, slots=True)
class PointsEarned:
    """One event of the topic, identified by the outbox's message id."""

    message_id: str
    purchase_id: str
    member: str
    points: int


Headers = Sequence[tuple[str, str | bytes | None]] | dict[str, str | bytes | None]


def read_event(headers: Headers | None, value: bytes | None) -> PointsEarned:
    """Read a record; raises ValueError if it is not an event of the outbox."""
    message_id = dict(headers or ()).get("outbox_message_id")
    if not isinstance(message_id, bytes) or value is None:
        raise ValueError("a record without outbox_message_id or value")
    event: dict[str, Any] = json.loads(value)
    return PointsEarned(
        message_id.decode(), str(event["purchase_id"]), str(event["member"]), int(event["points"])
    )


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """Create the tables if they are missing."""
    with connection.transaction():
        connection.execute(CREATE_TABLES)


def grant(connection: psycopg.Connection[Any], events: Sequence[PointsEarned]) -> None:
    """Grant the points of each event, unless they were granted before."""
    rows = [(e.message_id, e.purchase_id, e.member, e.points) for e in events]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(GRANT_ONCE, rows)
