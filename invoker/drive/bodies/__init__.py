"""Runs bodies: on the loop, or in a thread of a pool."""

__all__: list[str] = []
