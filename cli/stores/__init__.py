"""Commands that talk to the stores directly."""
