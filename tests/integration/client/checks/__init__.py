"""The check endpoint of a producer in real servers."""
