"""What the relay, producers, the checker and late frames do to the stores."""
