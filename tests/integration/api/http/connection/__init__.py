"""Connections, framing and bytes on the wire."""
