"""An aggregator: it reads a stream, and returns one value after the end of the input.

python -m invoker functions.total:total
seq 100 | python -m invoker call localhost:8081
"""

from collections.abc import Iterator


def total(numbers: Iterator[int]) -> int:
    """The sum of all numbers; 0 without numbers."""
    return sum(numbers)
