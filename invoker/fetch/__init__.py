"""Gets what a URI refers to, within the fences that an operator sets."""

__all__: list[str] = []
