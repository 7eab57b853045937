"""Attaches the HTTP API to the transports, with the code that is not pure."""

__all__: list[str] = []
