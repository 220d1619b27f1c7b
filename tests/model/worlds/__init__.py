"""The worlds of a configuration, the steps between them, and what must hold in each."""
