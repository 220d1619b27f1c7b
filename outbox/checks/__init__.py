"""Check-back: when a half message is checked, whom to ask, what an answer means. Pure."""
