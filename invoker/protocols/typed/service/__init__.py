"""Typed services at the transports."""

__all__: list[str] = []
