"""Federated compute's place at the doors."""

__all__: list[str] = []
