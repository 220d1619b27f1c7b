"""Programs that run as forks of a process that has imported them."""
