"""One question a file; each prints what it measured, with the machine and the settings."""
