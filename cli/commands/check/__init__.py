"""`outbox check`: tests a check endpoint."""
