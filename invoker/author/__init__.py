"""Reads an author's function: the decorator, annotations, parameters, and where functions are loaded from."""

__all__: list[str] = []
