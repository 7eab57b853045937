"""Attaches federated compute to the transports."""

__all__: list[str] = []
