"""Other systems and plain ways for the same work, as references."""
