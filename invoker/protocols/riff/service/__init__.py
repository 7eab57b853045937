"""Attaches riff to the transports, and drives what is not pure."""

__all__: list[str] = []
