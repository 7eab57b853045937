"""Fetches the content behind a URI, within the limits that an operator sets."""

__all__: list[str] = []
