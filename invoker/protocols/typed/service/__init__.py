"""Typed services at the doors."""

__all__: list[str] = []
