"""One audit of both stores, and its repetition in a loop."""
