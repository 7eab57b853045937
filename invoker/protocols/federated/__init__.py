"""Federated compute: sessions of devices, and the rounds of training that they feed. Pure: it waits for nothing."""

__all__: list[str] = []
