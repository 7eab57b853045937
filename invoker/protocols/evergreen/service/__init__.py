"""Attaches Evergreen to the gRPC transport, and action-engine to the HTTP transport."""

__all__: list[str] = []
