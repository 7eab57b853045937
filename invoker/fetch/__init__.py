"""Gets the content that a URI refers to, within the limits that an operator sets."""

__all__: list[str] = []
