"""The record that the processes of a run write while it lasts."""
