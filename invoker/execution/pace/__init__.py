"""Counts and measures calls for every driver: turns of the loop, tasks, time limits of threads."""

__all__: list[str] = []
