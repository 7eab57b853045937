"""The client of federated compute; `invoker.client` has its public names."""

__all__: list[str] = []
