"""Drives conversations in threads: the thread that reads and writes a wire stream runs the function."""

__all__: list[str] = []
