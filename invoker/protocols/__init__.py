"""The protocols: one folder for each, pure translators that do not depend on each other."""

__all__: list[str] = []
