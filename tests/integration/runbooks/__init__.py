"""The runbooks of docs/runbooks.md that move an installation, carried out on real servers."""
