"""Doors: sockets, TLS, HTTP/2."""

__all__: list[str] = []
