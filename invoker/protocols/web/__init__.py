"""The HTTP API: calls of functions by requests, streams and WebSockets; the OpenAPI document; the page for browsers."""

__all__: list[str] = []
