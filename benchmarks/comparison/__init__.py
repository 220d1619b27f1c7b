"""`make bench`: this tree beside its rivals and its last release, in turn, on one machine."""
