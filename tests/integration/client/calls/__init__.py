"""The calls of a producer over real HTTP: shared, repeated, limited in time, safe in a fork."""
