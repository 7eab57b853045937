"""Attaches the HTTP API to the transports; code with I/O is here and not in the sessions."""

__all__: list[str] = []
