"""What a reconciliation reads from PostgreSQL and stores there."""
