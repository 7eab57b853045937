"""What is made of a function: one body that takes iterators and gives iterators, started and stopped once a process."""

__all__: list[str] = []
