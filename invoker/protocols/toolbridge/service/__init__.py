"""The tool bridge's place at the transports."""

__all__: list[str] = []
