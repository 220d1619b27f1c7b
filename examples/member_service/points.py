"""Points: the inbox has each record's id in the transaction that grants its points, so once."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from confluent_kafka import Message

from outbox_client.inbox import message_id
from outbox_client.inbox.psycopg import PsycopgInbox

INBOX = PsycopgInbox("member-service")

CREATE_TABLES = """
CREATE TABLE IF NOT EXISTS member_points (
  member text PRIMARY KEY,
  points bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS point_grant (
  message_id  text NOT NULL,
  purchase_id text NOT NULL,
  member      text NOT NULL,
  points      bigint NOT NULL
)"""

GRANT = """
WITH granted AS (
  INSERT INTO point_grant (message_id, purchase_id, member, points) VALUES (%s, %s, %s, %s)
  RETURNING member, points
)
INSERT INTO member_points AS total (member, points)
SELECT member, points FROM granted
ON CONFLICT (member) DO UPDATE SET points = total.points + excluded.points"""


class PointsEarned(NamedTuple):
    """One event of the topic, identified by the outbox's message id."""

    message_id: str
    purchase_id: str
    member: str
    points: int


def read_event(record: Message) -> PointsEarned:
    """Read a record; raises ValueError if it is not an event of the outbox."""
    value = record.value()
    if value is None:
        raise ValueError("a record without value")
    event: dict[str, Any] = json.loads(value)
    return PointsEarned(
        message_id(record), str(event["purchase_id"]), str(event["member"]), int(event["points"])
    )


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """Create the tables if they are missing."""
    INBOX.create_table(connection)
    with connection.transaction():
        connection.execute(CREATE_TABLES)


def grant(connection: psycopg.Connection[Any], records: Sequence[Message]) -> None:
    """Grant the points of each record, unless they were granted before."""
    with connection.transaction():
        for record in records:
            if INBOX.first_time(connection, record):
                connection.execute(GRANT, read_event(record))
