"""What becomes of records that a producer sent: their reports, and copies of parked messages."""
