"""The check endpoint of a producer: read a signed check, answer it with a verdict."""
