"""Each fault that is planted in the stores is found, by cause and id."""
