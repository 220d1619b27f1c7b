"""One connection of a client: its limits of time and bytes, and how it ends."""
