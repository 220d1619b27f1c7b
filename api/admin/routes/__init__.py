"""The cold routes, a noun of the API in each file: parse, one use case, answer."""
