"""The `outbox` command: starts the programs, or calls them over HTTP."""
