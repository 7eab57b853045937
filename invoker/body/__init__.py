"""Makes a body of an author's function: it takes iterators and gives iterators; a process starts and stops it once."""

__all__: list[str] = []
