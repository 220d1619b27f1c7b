"""What a relay finds of batches that nobody knows the end of: nothing is lost or doubled."""
