"""What is new is proven to be as it must be, without Spark."""
