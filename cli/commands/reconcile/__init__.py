"""`outbox reconcile`: runs the audit, shows findings and repairs them."""
