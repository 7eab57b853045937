"""Transports carry bytes: sockets, TLS, HTTP/2. They depend on no protocol."""

__all__: list[str] = []
