"""The console: pages for operators, made from the answers of the REST routes."""
