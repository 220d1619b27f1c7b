"""The account service: takes the price from a balance, and tells it if, and only if, it did."""
