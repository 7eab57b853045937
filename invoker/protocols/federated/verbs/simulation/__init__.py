"""Rounds of federated compute with all their devices in one process, in simulated time: ``invoker simulate``."""

__all__: list[str] = []
