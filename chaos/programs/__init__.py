"""The programs of a run."""
