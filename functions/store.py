r"""A sink: it takes a stream and has no output; the call ends with OK when everything is stored.

python -m invoker functions.store:store
printf '{"id": 1, "name": "a"}\\n' | python -m invoker call localhost:8081 --json --outputs ''
"""

from collections.abc import Iterator
from dataclasses import dataclass

ROWS: dict[int, str] = {}


@dataclass
class Row:
    """What each message must be; anything else is refused with a sentence that says why."""

    id: int
    name: str


def store(rows: Iterator[Row]) -> None:
    """Keeps the last name of each id."""
    for row in rows:
        ROWS[row.id] = row.name
