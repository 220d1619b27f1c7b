"""The `outbox` command: a layer above the programs, which it starts or asks over HTTP."""
