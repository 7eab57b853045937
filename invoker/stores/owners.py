"""`Rows`: SQL statements for the reports of processes: leases, and the spaces to which they listen.

`answer` may write. `read_only` answers questions that need no writing, and raises `WriteNeededError` for others; so
reading does not lock the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

from invoker.core.spaces import StoreLimits
from invoker.core.store import Get, Item, Look, Refused, Scan
from invoker.stores.backend import Asked, Beat, Deafen, IsHeld, Listen, Listening, Sweep
from invoker.stores.rows import SECOND, SpaceRows

_DEAD_NS: Final = 3600 * SECOND
"""Seconds after the end of a process's lease until its holds are deleted; until then it may renew the lease."""


class WriteNeededError(Exception):
    """A question needs to write, but the transaction may only read."""


class Rows(SpaceRows):
    """Answers questions within a transaction that may write.

    Args:
        db: The connection.
        owner: The id of this process.
        limits: The limits of the store.
        clock: Returns nanoseconds since the epoch.

    Attributes:
        seen: The number of the last change that this process has read.
        is_deaf: Whether this process listens to no space, and therefore reads no changes.
        epoch: See `invoker.stores.backend.Backend`.
    """

    def __init__(self, db: sqlite3.Connection, owner: str, limits: StoreLimits, clock: Callable[[], int]) -> None:
        super().__init__(db, owner, limits, clock)
        self.seen = 0
        self.is_deaf = True
        self.epoch = 0
        self._deafened: set[int] = set()
        self._kinds |= {Listen: self._listen, Deafen: self._deafen, Beat: self._beat}

    def read_only(self, asked: Asked) -> Any:
        """Answer a question within a transaction that does not write.

        Raises:
            WriteNeededError: The question needs `answer`.
        """
        if isinstance(asked, IsHeld):
            return self.answer(asked)
        if isinstance(asked, Sweep) and not self._is_due():
            return False
        if not isinstance(asked, (Get, Scan, Look)):
            raise WriteNeededError
        row = self._row(asked.space)
        if row is not None and not self._is_fresh(row):
            raise WriteNeededError
        return self._read(row, asked)

    def _listen(self, asked: Listen) -> Listening | Refused:
        row = self._find(asked.space)
        if isinstance(row, Refused):
            return row
        self._touch(row)
        self._deafened.discard(row.key)
        self.is_deaf = False
        wants = asked.names is None or bool(asked.names)
        self._db.execute(
            "INSERT INTO ears VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET items = max(items, excluded.items)",
            (row.key, self._owner, wants),
        )
        items: tuple[Item, ...] = ()
        if asked.has_initial and asked.names is None:
            items = self._scan(row.key, Scan(asked.space, most=row.items))
        elif asked.has_initial:
            found = [self._get(row.key, name) for name in sorted(asked.names or ())]
            items = tuple(one for one in found if one is not None)
        return Listening(row.key, self._last_number(), items, self.epoch)

    def _last_number(self) -> int:
        """The number of the last change."""
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
        return row[0] if row else 0

    def _deafen(self, asked: Deafen) -> None:
        self._db.execute("DELETE FROM ears WHERE space = ? AND owner = ?", (asked.key, self._owner))
        self._deafened.add(asked.key)

    def deafened(self) -> set[int]:
        """The keys of spaces to which this process has stopped listening since the last call."""
        deafened, self._deafened = self._deafened, set()
        return deafened

    # Owners.

    def _beat(self, asked: Beat) -> bool:
        """Renew the lease, and delete expired rows; False if changes may have been missed."""
        now = self._clock()
        row = self._db.execute("SELECT seen FROM owners WHERE id = ?", (self._owner,)).fetchone()
        was_alive = row is not None and row[0] >= 0
        self.epoch += not was_alive
        if self.is_deaf or not was_alive:
            self.seen = self._last_number()
        self._db.execute(
            "INSERT INTO owners VALUES (?, ?, ?) ON CONFLICT DO UPDATE"
            " SET until_ns = excluded.until_ns, seen = excluded.seen",
            (self._owner, now + int(asked.lease_s * SECOND), self.seen),
        )
        for (owner,) in self._db.execute("SELECT id FROM owners WHERE until_ns < ? AND seen >= 0", (now,)).fetchall():
            self._db.execute("UPDATE owners SET seen = -1 WHERE id = ?", (owner,))
            self._db.execute("DELETE FROM ears WHERE owner = ?", (owner,))
        if self._db.execute("DELETE FROM owners WHERE until_ns < ?", (now - _DEAD_NS,)).rowcount:
            self._db.execute("DELETE FROM holds WHERE owner NOT IN (SELECT id FROM owners)")
        self._db.execute("DELETE FROM changes WHERE number <= (SELECT min(seen) FROM owners WHERE seen >= 0)")
        return was_alive

    def leave(self) -> None:
        """Release all holds, because this process ends."""
        for table, column in (("owners", "id"), ("holds", "owner"), ("ears", "owner")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (self._owner,))  # noqa: S608 - our own names
