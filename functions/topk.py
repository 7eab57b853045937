r"""A stream and a single value: ``k`` is the only message of the second input.

python -m invoker functions.topk:topk
printf 'pear\\nfig\\napple\\n' | python -m invoker call localhost:8081 --arg 1=2
"""

import heapq
from collections.abc import Iterator


def topk(items: Iterator[str], k: int) -> Iterator[str]:
    """The k longest items, the longest first."""
    yield from heapq.nlargest(k, items, key=len)
