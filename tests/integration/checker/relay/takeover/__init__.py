"""A relay dies, freezes or leaves, and another one continues."""
