"""Each page: what it shows, offers and acts on, as HTML over a real service."""
