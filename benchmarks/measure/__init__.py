"""What the benchmarks measure and print beside each result."""
