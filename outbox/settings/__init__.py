"""Settings: one typed catalogue, read in one place."""
