"""`Board`: a file in memory on which each worker writes its numbers, so that any worker can report the sum of all.

A row has the numbers of one process. Only that process writes it, each time the whole row with a checksum, so no
process waits for another, and the last row of a worker is kept even if it is killed. Rows are far apart in the file,
but only written bytes take memory. Row 0 belongs to the supervisor: it has the sums of the dead workers' counts, and
for each row the last worker that was added to these sums. Both are changed by one write, so a reader sees the numbers
of a dead worker exactly once: before the write in its row, afterwards in the sums. So counters never decrease.
"""

from __future__ import annotations

import os
import tempfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec

ROW_BYTES: Final = 256 * 1024 * 1024
_READS: Final = 100
_HEAD: Final = 16
"""Bytes before the text of a row: its checksum and its length."""


@dataclass(slots=True)
class Numbers:
    """The counts, by name.

    Attributes:
        counters: Sums that only grow.
        gauges: Current values, which are dropped when their process has ended.
    """

    counters: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    def plus(self, other: Numbers) -> Numbers:
        """The sum of both, name by name."""
        counters = Counter(self.counters)
        counters.update(other.counters)
        gauges = Counter(self.gauges)
        gauges.update(other.gauges)
        return Numbers(dict(counters), dict(gauges))


@dataclass(slots=True)
class Row:
    """The row that one process has written last.

    Attributes:
        worker: The number of the worker; 0 is the supervisor.
        beat: When the row was written, in seconds on the clock of its process.
        numbers: The counts of the worker.
        added: Only in the supervisor's row: for each row, the last worker whose counters are in these numbers.
    """

    worker: int = 0
    beat: float = 0.0
    numbers: Numbers = field(default_factory=Numbers)
    added: dict[int, int] = field(default_factory=dict)


class Board:
    """The rows, in a file that the supervisor makes and the workers inherit.

    Args:
        handle: The file descriptor of the file.
    """

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @classmethod
    def make(cls) -> Board:
        """Make a new board, in memory if the system supports that. It is removed when the last process closes it."""
        if hasattr(os, "memfd_create"):
            return cls(os.memfd_create("invoker-board"))
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()))

    def write(self, index: int, row: Row) -> None:
        """Replace the row of worker ``index``, and set its beat to now."""
        row.beat = time.monotonic()
        text = msgspec.json.encode(row)
        if len(text) > ROW_BYTES - _HEAD:
            raise AssertionError(f"a row has {len(text)} bytes, although there are few names")
        os.pwrite(self.handle, b"%08x%08x" % (zlib.crc32(text), len(text)) + text, index * ROW_BYTES)

    def read(self) -> dict[int, Row]:
        """All rows that were ever written, by index."""
        rows: dict[int, Row | None] = {}
        for _ in range(_READS):
            size = os.fstat(self.handle).st_size
            rows = {at // ROW_BYTES: self._row(at) for at in range(0, size, ROW_BYTES)}
            if all(row is not None for row in rows.values()):
                break
        # A row that stays unreadable belongs to a process that was killed while it wrote.
        return {index: row for index, row in rows.items() if row is not None and row.beat}

    def total(self) -> Numbers:
        """The sum of the numbers of all live workers, and of the counters of the dead ones."""
        rows = self.read()
        first = rows.get(0, Row())
        total = first.numbers
        for index, row in rows.items():
            if index and row.worker > first.added.get(index, 0):
                total = total.plus(row.numbers)
        return total

    def close(self) -> None:
        """Close the file, which is removed when the last process closes it."""
        os.close(self.handle)

    def _row(self, at: int) -> Row | None:
        """The row at offset ``at``; None if it was only partly written."""
        head = os.pread(self.handle, _HEAD, at)
        if not head.strip(b"\0"):
            return Row()  # nothing was written to this row yet
        text = os.pread(self.handle, int(head[8:], 16), at + _HEAD)
        if head[:8] != b"%08x" % zlib.crc32(text):
            return None
        return msgspec.json.decode(text, type=Row)
