"""Attaches riff to the transports; code with I/O is here and not in the session."""

__all__: list[str] = []
