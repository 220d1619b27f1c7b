"""One run from its start to its verdict, and what is made of runs: slices and control groups."""
