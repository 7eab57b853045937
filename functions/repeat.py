"""Two inputs: each parameter is a stream, and the function reads both at its own pace.

python -m invoker functions.repeat:repeat
python -m invoker call localhost:8081 --data ho --arg 1=3
"""

from collections.abc import Iterator


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    """Repeat each word as many times as the count at the same position."""
    for word, count in zip(words, counts, strict=False):
        yield from [word] * count
