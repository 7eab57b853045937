"""The services that every process has besides its protocols: health, metrics and reflection."""

__all__: list[str] = []
