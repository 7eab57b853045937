"""Two inputs: each parameter is a stream, and they are read at the function's own pace.

python -m invoker functions.repeat:repeat
python -m invoker call localhost:8081 --data ho --arg 1=3
"""

from collections.abc import Iterator


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    """Each word as often as the count beside it says."""
    for word, count in zip(words, counts, strict=False):
        yield from [word] * count
