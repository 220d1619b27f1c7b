"""What brokers of several releases do with the markers of a partition that has no leader."""
