"""A custom codec: ``text/csv`` in and out; it takes part in content negotiation.

python -m invoker functions.csv_rows:swap
python -m invoker call localhost:8081 --content-type text/csv --accept text/csv --data 'a,b'
"""

import csv
import io
from typing import Any

from invoker import Message, codec


@codec("text/csv")
class Csv:
    """Rows as lists of texts."""

    def decode(self, message: Message[bytes], type_: Any) -> list[list[str]]:
        """Parse each line into a list."""
        return list(csv.reader(io.StringIO(message.payload.decode())))

    def encode(self, value: Any, media_type: Any) -> bytes:
        """Write each list as a line."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(value)
        return out.getvalue().encode()

    def can_encode(self, value: Any) -> bool:
        """Whether the value is a list."""
        return isinstance(value, list)


def swap(rows: list[list[str]]) -> list[list[str]]:
    """Each row from right to left."""
    return [row[::-1] for row in rows]
