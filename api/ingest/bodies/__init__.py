"""The bodies of the hot routes: from bytes to values, so that no caller holds up another."""
