"""The HTTP API: calls of functions by requests, streams and WebSocket, its OpenAPI document and the page."""

__all__: list[str] = []
