"""The programs of a run: their processes, environment and clocks."""
