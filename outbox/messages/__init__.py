"""Half messages: their values, ids, state machine, records and manifests. Pure."""
