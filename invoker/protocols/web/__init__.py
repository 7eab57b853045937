"""The riff streaming protocol and its request/reply twin over HTTP."""

__all__: list[str] = []
