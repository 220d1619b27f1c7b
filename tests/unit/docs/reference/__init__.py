"""Tables of pages that people look things up in."""
