"""What the settings of an operator's broker do to the relay."""
