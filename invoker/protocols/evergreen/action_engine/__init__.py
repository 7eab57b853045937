"""Sessions of action-engine: nested MessagePack over WebSocket (docs/reference/action-engine-wire.md)."""

__all__: list[str] = []
