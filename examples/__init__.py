"""The example of docs/semantics.md in running code: pay in one service, grant points in another."""
