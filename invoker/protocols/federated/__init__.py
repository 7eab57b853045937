"""Federated compute: sessions of devices, and the rounds of training in which the devices take part."""

__all__: list[str] = []
