"""Pure translators, one folder a protocol, ignorant of each other."""

__all__: list[str] = []
