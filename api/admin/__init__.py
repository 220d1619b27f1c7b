"""The cold routes: groups, keys, messages, bulk actions, reconciliations, probes."""
