r"""Two named outputs: each is a separate stream, and ``tee`` lets both read the same input.

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
    """Send even numbers to one output, and odd numbers to the other."""
    left, right = tee(numbers)
    return Split((number for number in left if number % 2 == 0), (number for number in right if number % 2))
