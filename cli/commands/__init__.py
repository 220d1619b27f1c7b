"""The commands: one noun in each file."""
