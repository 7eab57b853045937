"""The protocols, one folder for each; they do not depend on each other."""

__all__: list[str] = []
