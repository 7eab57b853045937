"""`SqliteBackend`: keeps spaces in a file, for the processes of one machine; the spaces survive the processes.

All questions of one batch are one transaction. A transaction first only reads; if it must write, it is repeated with
the lock of the file. While some process listens, changes are written to a table, with consecutive numbers. Other
processes poll SQLite's ``data_version``, which only reads shared memory, and then read the new changes. Once all living
processes have read a change, it is deleted.

The file is in WAL mode with ``synchronous=NORMAL``: answered writes survive the end of any process. A crash of the
machine may lose the latest writes, but leaves the file intact. A `Put` with ``is_durable`` is on the disk when it is
answered: its transaction is written with ``synchronous=FULL``.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from invoker.core.spaces import StoreLimits
from invoker.core.store import Change, Put, Refused
from invoker.errors import StartupError
from invoker.stores.backend import UNAVAILABLE, Asked, Beat, Event, Listening, Lose, Tell
from invoker.stores.owners import Rows, WriteNeededError
from invoker.stores.rows import reason_of

log = logging.getLogger(__name__)

_BUSY_S: Final = 5.0
"""Seconds to wait for the lock of the file."""

_LOOK_S: Final = (0.002, 0.02)
"""Seconds between two polls for changes of other processes: soon after a change, and otherwise."""

_TRIES: Final = 20

_VERSION: Final = 1
_SCHEMA: Final = Path(__file__).with_name("schema.sql")


class SqliteBackend:
    """Keeps spaces in a file.

    Args:
        path: The path of the file; it is made if it does not exist, readable only for its owner.
        limits: The limits of the store.
        clock: Returns nanoseconds since the epoch; the same clock for all processes.
    """

    def __init__(self, path: Path, limits: StoreLimits | None = None, clock: Callable[[], int] | None = None) -> None:
        self._path = path
        self._limits = limits or StoreLimits()
        self._clock = clock or time.time_ns
        self._owner = uuid.uuid4().hex
        self._heard: set[int] = set()  # keys of spaces to which this process listens
        self._version = 0
        self._look_s = _LOOK_S[1]
        self._is_failing = False

    @property
    def epoch(self) -> int:
        """A number that grows when changes may have been missed."""
        return self._rows.epoch

    def open(self, tell: Tell, lose: Lose) -> None:
        """Open the file, or make it."""
        self._tell, self._lose = tell, lose
        try:
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            with ExitStack() as opened:
                opened.callback(self._db.close)
                self._make()
                self._rows = Rows(self._db, self._owner, self._limits, self._clock)
                self._within("BEGIN IMMEDIATE", [Beat()], self._rows.answer)
                opened.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise StartupError(f"the store in the file '{self._path}' cannot be opened: {error}") from error

    def perform(self, asked: Sequence[Asked]) -> list[Any]:
        """Answer all questions in one transaction, in their order."""
        try:
            try:
                answers = self._within("BEGIN", asked, self._rows.read_only)
            except WriteNeededError:
                answers = self._written(asked)
        except sqlite3.Error as error:
            self._failed(error)
            return [UNAVAILABLE] * len(asked)
        self._is_failing = False
        for one, answer in zip(asked, answers, strict=True):
            if isinstance(answer, Listening):
                self._heard.add(answer.key)
            elif isinstance(one, Beat) and not answer:
                self._heard.clear()
                self._lose()
        self._heard -= self._rows.deafened()
        self._rows.is_deaf = not self._heard
        return answers

    def look(self) -> float:
        """Read the changes of other processes, if this one listens."""
        try:
            return self._look() if self._heard else math.inf
        except sqlite3.Error as error:
            self._failed(error)
            return _LOOK_S[1] * 10

    def close(self) -> None:
        """Release the holds of this process."""
        try:
            self._rows.leave()
        except sqlite3.Error as error:
            self._failed(error)
        self._db.close()

    # Private helpers.

    def _make(self) -> None:
        """Make the tables, unless another process has made them."""
        for _ in range(_TRIES):
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError:  # another process does the same, and SQLite does not wait for it by itself
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("COMMIT")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("BEGIN IMMEDIATE")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise StartupError(
                f"the store in the file '{self._path}' has the format {version}, and this invoker knows {_VERSION} only"
            )
        if version == 0:
            for statement in _SCHEMA.read_text(encoding="utf-8").split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version={_VERSION}")
        self._db.execute("COMMIT")

    def _within(self, begin: str, asked: Sequence[Asked], answer: Callable[[Asked], Any]) -> list[Any]:
        self._db.execute(begin)
        try:
            answers = [answer(one) for one in asked]
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return answers

    def _written(self, asked: Sequence[Asked]) -> list[Any]:
        if not any(type(one) is Put and one.is_durable for one in asked):
            return self._within("BEGIN IMMEDIATE", asked, self._rows.answer)
        self._db.execute("PRAGMA synchronous=FULL")
        try:
            return self._within("BEGIN IMMEDIATE", asked, self._rows.answer)
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def _look(self) -> float:
        """Read the changes since the last poll; returns the seconds until the next one."""
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version or self._rows.has_changed:
            self._version, self._rows.has_changed = version, False
            self._read()
        else:
            self._look_s = min(self._look_s * 1.5, _LOOK_S[1])
        return self._look_s

    def _read(self) -> None:
        events: list[Event] = []
        for number, key, name, value, updated_ns, is_new, reason in self._db.execute(
            "SELECT number, space, name, value, updated_ns, is_new, reason FROM changes WHERE number > ?"
            " ORDER BY number", (self._rows.seen,),
        ):  # fmt: skip
            self._rows.seen = number
            if key not in self._heard:
                continue
            if reason:
                self._heard.discard(key)
            what = Refused(reason_of(reason)) if reason else Change(name, value, updated_ns, is_new=bool(is_new))
            events.append(Event(key, number, what))
        if events:
            self._look_s = _LOOK_S[0]
            self._tell(events)

    def _failed(self, error: sqlite3.Error) -> None:
        if not self._is_failing:
            self._is_failing = True
            log.error("the store in the file '%s' fails: %s", self._path, error)
