"""The reconciliation with one broken rule at a time."""
