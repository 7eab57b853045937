"""The client of Evergreen; `invoker.client` has its public names."""

__all__: list[str] = []
