"""The relay's threads: one for each shard."""
