"""The console: pages for operators, made from the answers of the REST routes."""

from typing import Final

PREFIX: Final = "/ui"
"""The path below which the pages are."""
