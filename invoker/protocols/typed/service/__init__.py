"""How typed services are attached to the transports."""

__all__: list[str] = []
