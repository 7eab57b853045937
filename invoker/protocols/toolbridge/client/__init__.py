"""The client of the tool bridge; `invoker.client` has its public names."""

__all__: list[str] = []
