"""The comparison of both sides, and the diagnosis of what differs."""
