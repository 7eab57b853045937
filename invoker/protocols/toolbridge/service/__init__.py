"""Attaches the tool bridge to the transports."""

__all__: list[str] = []
