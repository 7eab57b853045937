"""The client of riff; `invoker.client` has its public names."""

__all__: list[str] = []
