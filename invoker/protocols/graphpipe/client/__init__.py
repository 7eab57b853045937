"""The client of GraphPipe; `invoker.client` has its public names."""

__all__: list[str] = []
