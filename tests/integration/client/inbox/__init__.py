"""The inbox: a record that is delivered again has no second effect."""
