"""`SpaceRows`: answers questions about spaces and items by SQL statements, within a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from invoker.core.spaces import OVERHEAD, StoreLimits, weight
from invoker.core.store import (
    ABSENT,
    PRESENT,
    Create,
    Drop,
    Get,
    Hold,
    Item,
    Look,
    Put,
    Reason,
    Refused,
    Scan,
    Space,
)
from invoker.stores.backend import SWEPT, Asked, Dropped, Held, IsHeld, Release, Sweep

SECOND: Final = 1_000_000_000

_TOUCH: Final = (0.01, 1.0)
"""A use of a space is recorded only if the last recorded one is older than this part of its time to live, or than this
many seconds."""


class Row(NamedTuple):
    """A row of the table of spaces."""

    key: int
    name: str
    about: bytes
    ttl_s: float
    created_ns: int
    used_ns: int
    items: int
    size: int

    @property
    def expires_ns(self) -> int:
        """The time at which the space expires, unless it is held."""
        return self.used_ns + int(self.ttl_s * SECOND)


class SpaceRows:
    """Answers questions within a transaction that may write.

    Args:
        db: The connection.
        owner: The id of this process.
        limits: The limits of the store.
        clock: Returns nanoseconds since the epoch.

    Attributes:
        has_changed: Whether changes were written since this was last set to False.
    """

    def __init__(self, db: sqlite3.Connection, owner: str, limits: StoreLimits, clock: Callable[[], int]) -> None:
        self.has_changed = False
        self._db = db
        self._owner = owner
        self._limits = limits
        self._clock = clock
        self._kinds: dict[type, Callable[[Any], Any]] = {
            Create: self._create, Drop: self._drop, Hold: self._hold, Put: self._put,
            Get: self._use, Scan: self._use, Look: self._use,
            Release: self._release, IsHeld: self._is_held, Sweep: self._sweep,
        }  # fmt: skip

    def answer(self, asked: Asked) -> Any:
        """Answer a question; the type of the answer depends on the question's."""
        return self._kinds[type(asked)](asked)

    # Spaces.

    def _row(self, name: str) -> Row | None:
        """The row of the space with this name, which may have expired."""
        row = self._db.execute(
            "SELECT key, name, about, ttl_s, created_ns, used_ns, items, size FROM spaces WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else Row(*row)

    def _is_fresh(self, row: Row) -> bool:
        """Whether the last recorded use is so recent that this use need not be recorded."""
        part, most_s = _TOUCH
        age_ns = self._clock() - row.used_ns
        return 0 <= age_ns < min(part * row.ttl_s, most_s) * SECOND

    def _read(self, row: Row | None, asked: Get | Scan | Look) -> Any:
        """Answer a question that reads the space of ``row``; None stands for a missing space."""
        if row is None:
            return self._missing(asked.space)
        if isinstance(asked, Look):
            return self._told(row)
        return self._get(row.key, asked.name) if isinstance(asked, Get) else self._scan(row.key, asked)

    def _missing(self, name: str) -> Refused:
        gone = self._db.execute("SELECT reason FROM gone WHERE name = ?", (name,)).fetchone()
        return Refused(reason_of(gone[0]) if gone else Reason.UNKNOWN)

    def _find(self, name: str) -> Row | Refused:
        row = self._row(name)
        if row is None:
            return self._missing(name)
        if self._clock() < row.expires_ns or self._clock() < self._lease_end_ns(row):
            return row
        return self._end(row, Reason.EXPIRED)

    def _lease_end_ns(self, row: Row) -> int:
        """The end of the last lease of the processes that hold a space; the space expires then."""
        until = self._db.execute(
            "SELECT max(until_ns) FROM holds JOIN owners ON owner = id WHERE space = ?", (row.key,)
        ).fetchone()[0]
        return (until or 0) + int(row.ttl_s * SECOND)

    def _holds(self, key: int) -> int:
        """How many holds living processes have on a space."""
        row = self._db.execute(
            "SELECT total(count) FROM holds JOIN owners ON owner = id WHERE space = ? AND until_ns > ?",
            (key, self._clock()),
        ).fetchone()
        return int(row[0])

    def _told(self, row: Row, *, is_new: bool = False) -> Space:
        return Space(
            row.name, row.about, row.ttl_s, row.created_ns, self._clock(), row.items, row.size, self._holds(row.key),
            is_new,
        )  # fmt: skip

    def _touch(self, row: Row) -> None:
        if not self._is_fresh(row):
            self._touch_key(row.key, row.ttl_s)

    def _touch_key(self, key: int, ttl_s: float) -> None:
        now = self._clock()
        self._db.execute(
            "UPDATE spaces SET used_ns = ?, expires_ns = ? WHERE key = ?", (now, now + int(ttl_s * SECOND), key)
        )

    def _end(self, row: Row, reason: Reason) -> Refused:
        self._db.execute("DELETE FROM spaces WHERE key = ?", (row.key,))
        self._db.execute("DELETE FROM items WHERE space = ?", (row.key,))
        self._db.execute("UPDATE totals SET spaces = spaces - 1, size = size - ?", (row.size,))
        self._db.execute("INSERT OR REPLACE INTO gone (name, reason) VALUES (?, ?)", (row.name, reason.name))
        self._db.execute(
            "DELETE FROM gone WHERE number <= (SELECT number FROM gone ORDER BY number DESC LIMIT 1 OFFSET ?)",
            (self._limits.spaces,),
        )
        if self._hears(row.key, items=False):
            self._db.execute("INSERT INTO changes (space, reason) VALUES (?, ?)", (row.key, reason.name))
            self._db.execute("DELETE FROM ears WHERE space = ?", (row.key,))
            self.has_changed = True
        return Refused(reason)

    def _create(self, asked: Create) -> Space | Refused:
        row = self._find(asked.space)
        if isinstance(row, Row):
            self._touch(row)
            return self._told(row)
        size, limits = OVERHEAD + len(asked.space) + len(asked.about), self._limits
        spaces, total = self._totals()
        if spaces >= limits.spaces or total + size > limits.total_bytes:
            self._sweep(Sweep())
            spaces, total = self._totals()
        if spaces >= limits.spaces:
            return Refused(Reason.SPACES, spaces)
        if total + size > limits.total_bytes:
            return Refused(Reason.BYTES, total)
        now = self._clock()
        self._db.execute("DELETE FROM gone WHERE name = ?", (asked.space,))
        self._db.execute("UPDATE totals SET spaces = spaces + 1, size = size + ?", (size,))
        key = self._db.execute(
            "INSERT INTO spaces (name, about, ttl_s, created_ns, used_ns, expires_ns, size)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (asked.space, asked.about, asked.ttl_s, now, now, now + int(asked.ttl_s * SECOND), size),
        ).lastrowid
        assert key is not None
        return self._told(Row(key, asked.space, asked.about, asked.ttl_s, now, now, 0, size), is_new=True)

    def _totals(self) -> tuple[int, int]:
        spaces, size = self._db.execute("SELECT spaces, size FROM totals").fetchone()
        return spaces, size

    def _drop(self, asked: Drop) -> Refused | Dropped | None:
        row = self._find(asked.space)
        if isinstance(row, Refused):
            return None
        holds = self._holds(row.key)
        if holds and not asked.is_forced:
            return Refused(Reason.HELD, holds)
        self._end(row, Reason.DROPPED)
        return Dropped(row.key) if holds else None

    def _hold(self, asked: Hold) -> Held | Refused:
        row = self._find(asked.space)
        if isinstance(row, Refused):
            return row
        self._touch(row)
        self._db.execute(
            "INSERT INTO holds VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1", (row.key, self._owner)
        )
        return Held(self._told(row), row.key)

    def _release(self, asked: Release) -> None:
        mine = (asked.key, self._owner)
        self._db.execute("UPDATE holds SET count = count - ? WHERE space = ? AND owner = ?", (asked.count, *mine))
        self._db.execute("DELETE FROM holds WHERE space = ? AND owner = ? AND count <= 0", mine)
        row = self._db.execute("SELECT ttl_s FROM spaces WHERE key = ?", (asked.key,)).fetchone()
        if row is not None:
            self._touch_key(asked.key, row[0])

    def _is_held(self, asked: IsHeld) -> bool:
        return self._holds(asked.key) > 0

    def _sweep(self, _: Sweep) -> bool:
        late = self._db.execute("SELECT name FROM spaces WHERE expires_ns <= ? LIMIT ?", (self._clock(), SWEPT))
        for (name,) in late.fetchall():
            row = self._find(name)
            if isinstance(row, Row):  # the space is held, or was held until lately
                self._db.execute("UPDATE spaces SET expires_ns = ? WHERE key = ?", (self._lease_end_ns(row), row.key))
        return self._is_due()

    def _is_due(self) -> bool:
        """Whether a space may have expired."""
        due = self._db.execute("SELECT min(expires_ns) FROM spaces").fetchone()[0]
        return due is not None and due <= self._clock()

    def _hears(self, key: int, *, items: bool) -> bool:
        """Whether any process listens to a space; with ``items``, for changes of its items."""
        found = self._db.execute("SELECT 1 FROM ears WHERE space = ? AND items >= ? LIMIT 1", (key, items)).fetchone()
        return found is not None

    # Items.

    def _use(self, asked: Get | Scan | Look) -> Any:
        row = self._find(asked.space)
        if isinstance(row, Refused):
            return row
        self._touch(row)
        return self._read(row, asked)

    def _get(self, key: int, name: str) -> Item | None:
        row = self._db.execute(
            "SELECT name, value, created_ns, updated_ns, about FROM items WHERE space = ? AND name = ?", (key, name)
        ).fetchone()
        return None if row is None else Item(*row)

    def _scan(self, key: int, asked: Scan) -> tuple[Item, ...]:
        found: list[Item] = []
        begins_behind = asked.after and asked.after >= asked.prefix
        sign, least = (">", asked.after) if begins_behind else (">=", asked.prefix)
        for row in self._db.execute(
            "SELECT name, value, created_ns, updated_ns, about FROM items"  # noqa: S608 - only constant parts
            f" WHERE space = ? AND name {sign} ? ORDER BY name LIMIT ?",
            (key, least, max(0, asked.most)),
        ):
            if not row[0].startswith(asked.prefix):
                break
            found.append(Item(*row))
        return tuple(found)

    def _put(self, asked: Put) -> Item | Refused | None:
        row = self._find(asked.space)
        if isinstance(row, Refused):
            return row
        self._touch(row)
        name, value, limits = asked.name, asked.value, self._limits
        old = self._db.execute(
            "SELECT created_ns, updated_ns, about, length(value) FROM items WHERE space = ? AND name = ?",
            (row.key, name),
        ).fetchone()
        created, version, old_about, length = old or (0, ABSENT, b"", 0)
        if asked.expects not in (None, version) and not (asked.expects == PRESENT and old):
            return Refused(Reason.CHANGED)
        about = old_about if old and asked.keeps_about else asked.about
        now = max(self._clock(), version + 1)
        growth = 0 if value is None else weight(name, value, about)
        growth -= weight(name, b"", old_about) + length if old else 0
        if value is None:
            if old is None:
                return None
            self._db.execute("DELETE FROM items WHERE space = ? AND name = ?", (row.key, name))
        elif old is None and row.items >= limits.items:
            return Refused(Reason.ITEMS, row.items)
        elif growth > 0 and (row.size + growth > limits.space_bytes or self._totals()[1] + growth > limits.total_bytes):
            return Refused(Reason.BYTES, row.size)
        else:
            self._db.execute(
                "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
                " SET value = excluded.value, about = excluded.about, updated_ns = excluded.updated_ns",
                (row.key, name, now, now, about, value),
            )
        count = (value is not None) - (old is not None)
        self._db.execute("UPDATE spaces SET items = items + ?, size = size + ? WHERE key = ?", (count, growth, row.key))
        if growth:
            self._db.execute("UPDATE totals SET size = size + ?", (growth,))
        if self._hears(row.key, items=True):
            self._db.execute(
                "INSERT INTO changes (space, name, value, updated_ns, is_new) VALUES (?, ?, ?, ?, ?)",
                (row.key, name, value, now, old is None),
            )
            self.has_changed = True
        return None if value is None else Item(name, value, created or now, now, about)


def reason_of(name: str) -> Reason:
    """The reason with this name, as it is stored in the file."""
    return Reason[name]
