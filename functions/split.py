r"""Two named outputs: each is a stream of its own, and ``tee`` gives both the same input.

python -m invoker functions.split:split
printf '1\\n2\\n3\\n' | python -m invoker call localhost:8081 --outputs even,odd
"""

from collections.abc import Iterator
from typing import NamedTuple

from invoker import tee


class Split(NamedTuple):
    """The outputs."""

    even: Iterator[int]
    odd: Iterator[int]


def split(numbers: Iterator[int]) -> Split:
    """Even numbers on one output, odd ones on the other."""
    left, right = tee(numbers)
    return Split((number for number in left if number % 2 == 0), (number for number in right if number % 2))
