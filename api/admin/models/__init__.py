"""The wire models of the cold routes, one noun per file."""
