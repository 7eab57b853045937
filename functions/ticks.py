"""A source: it has no input, and yields values as soon as the call is open.

python -m invoker functions.ticks:ticks
python -m invoker call localhost:8081 --no-input
"""

from collections.abc import Iterator


def ticks() -> Iterator[int]:
    """Yield three ticks."""
    yield from (1, 2, 3)
