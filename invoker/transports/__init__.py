"""Transports carry bytes: sockets, TLS, HTTP/2. They know no protocol."""

__all__: list[str] = []
