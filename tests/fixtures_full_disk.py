"""A trigger that refuses each row of a table with PostgreSQL's error for a full disk."""

from __future__ import annotations

from typing import LiteralString

DISK_FULL: LiteralString = """
CREATE FUNCTION outbox.disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER disk_full BEFORE INSERT ON {table} EXECUTE FUNCTION outbox.disk_full()
"""
SPACE_AGAIN: LiteralString = "DROP FUNCTION outbox.disk_full() CASCADE"
