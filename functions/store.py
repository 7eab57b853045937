r"""A sink: it reads a stream and has no output; the call ends with OK when everything is stored.

python -m invoker functions.store:store
printf '{"id": 1, "name": "a"}\\n' | python -m invoker call localhost:8081 --json --outputs ''
"""

from collections.abc import Iterator
from dataclasses import dataclass

ROWS: dict[int, str] = {}


@dataclass
class Row:
    """The type of each message; other messages are refused with an error that says why."""

    id: int
    name: str


def store(rows: Iterator[Row]) -> None:
    """Keep the last name of each id."""
    for row in rows:
        ROWS[row.id] = row.name
