"""Pages that name a test for each promise, and rules that are cited by letter and number."""
