"""What an operator reads of messages and orders about them."""
