"""`outbox reconcile fix`."""
