"""The suites: unit (no I/O), contract (twins and the real thing), integration, spark, e2e."""
