"""Log events and metrics: each is named once."""
