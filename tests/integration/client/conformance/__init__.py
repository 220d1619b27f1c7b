"""One conformance kit for the clients of all languages."""
