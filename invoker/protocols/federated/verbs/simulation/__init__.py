"""``invoker simulate``: federated rounds with all their devices in one process, in simulated time."""

__all__: list[str] = []
