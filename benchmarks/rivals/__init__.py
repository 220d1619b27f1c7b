"""Other methods for an audit, as references for its cost and its verdicts."""
