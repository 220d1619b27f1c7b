"""The cold routes, one noun of the API per file: parse, one use case, answer."""
