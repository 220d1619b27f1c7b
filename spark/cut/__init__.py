"""The consistent cut: what a run reads, and where it starts and ends."""
