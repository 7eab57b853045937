"""Federated compute: sessions of devices, and the rounds of training that they feed.

All of it is pure and never waits.
"""

__all__: list[str] = []
