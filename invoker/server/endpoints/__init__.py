"""What every process answers besides its protocols: its health, metrics and reflection."""

__all__: list[str] = []
