"""The runbooks of docs/operations.md that move an installation, carried out on real servers."""
