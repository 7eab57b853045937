r"""A generator: a stream in, a stream out.

python -m invoker functions.running_mean:running_mean
printf '1\\n2\\n6\\n' | python -m invoker call localhost:8081
"""

from collections.abc import Iterator


def running_mean(numbers: Iterator[float]) -> Iterator[float]:
    """The mean of all numbers so far, after each of them."""
    total = 0.0
    for count, number in enumerate(numbers, 1):
        total += number
        yield total / count
