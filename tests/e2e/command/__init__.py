"""The `outbox` command as a user runs it."""
