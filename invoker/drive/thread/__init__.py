"""Drives conversations in threads: the thread that reads and writes a wire stream runs the function."""
