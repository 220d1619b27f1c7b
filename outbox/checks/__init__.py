"""Check-back: when a half message is checked, which group is asked, what an answer means. Pure."""
