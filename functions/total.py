"""An aggregator: a stream in, one value out, when the input has ended.

python -m invoker functions.total:total
seq 100 | python -m invoker call localhost:8081
"""

from collections.abc import Iterator


def total(numbers: Iterator[int]) -> int:
    """The sum of everything; 0 for nothing."""
    return sum(numbers)
