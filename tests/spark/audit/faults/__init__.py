"""Each fault that is planted in the stores is found, by class and id."""
