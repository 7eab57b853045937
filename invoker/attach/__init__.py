"""How a protocol is attached to the transports of its process."""

__all__: list[str] = []
