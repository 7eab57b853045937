"""Pure state: steps, streams, invocations, the engine."""

__all__: list[str] = []
