"""The account service: debits a balance, and publishes a message if, and only if, it did."""
