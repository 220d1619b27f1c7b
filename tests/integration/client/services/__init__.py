"""The services of the examples, on a real broker and database."""
