"""Functions that commit what they have gathered when their input ends: one line of a file, the name of the input."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

from invoker import Context, function

FILE = "TEST_COMMITS"
"""The variable of the environment that names the file."""


def _commit(context: Context) -> None:
    file = os.open(os.environ[FILE], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{context.input_names[0]}\n".encode())
    os.close(file)


@function
def total(xs: Iterator[int], context: Context) -> Iterator[int]:
    """The sum, in a thread."""
    made = sum(xs)
    _commit(context)
    yield made


@function
async def atotal(xs: AsyncIterator[int], context: Context) -> AsyncIterator[int]:
    """The sum, on the loop."""
    made = 0
    async for x in xs:
        made += x
    _commit(context)
    yield made
