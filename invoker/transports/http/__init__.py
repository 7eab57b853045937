"""The HTTP transport: HTTP/1.1, HTTP/2 and WebSocket."""

__all__: list[str] = []
