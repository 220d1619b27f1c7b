"""One call of the command: its flags, settings and operator, its output and its exit code."""
