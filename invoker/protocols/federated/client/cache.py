"""A cache of downloads, in memory or in a folder (F-072).

An error of the cache never fails a round; the client then downloads again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

MOST_BYTES: Final = 256 << 20
"""How many bytes are kept in memory; older entries are dropped for newer ones."""

_SUFFIX: Final = ".fcp"


class Entry(msgspec.Struct, frozen=True):
    """A body as it was received, with its Content-Type."""

    body: bytes
    media_type: str = ""


class Cache:
    """Keeps downloaded bodies by the cache id that the server gave; several threads may use it.

    Args:
        folder: The folder in which bodies are kept, which is made if it does not exist; None: they are kept in memory.
        now: Returns the time in seconds; with a folder, the clock must continue after a restart.
    """

    def __init__(self, folder: Path | str | None, now: Callable[[], float]) -> None:
        self._folder = None if folder is None else Path(folder)
        self._now = now
        self._kept: dict[str, tuple[float, Entry]] = {}
        self._lock = threading.Lock()

    def get(self, cache_id: str) -> Entry | None:
        """The entry with this id, unless it has expired."""
        if self._folder is not None:
            with contextlib.suppress(OSError, ValueError, TypeError):
                return self._read(self._path(cache_id))
            return None
        with self._lock:
            expires, entry = self._kept.get(cache_id, (0.0, None))
            return entry if expires > self._now() else None

    def put(self, cache_id: str, entry: Entry, max_age_s: float) -> None:
        """Keep a body for ``max_age_s`` seconds."""
        if max_age_s <= 0:
            return
        expires = self._now() + max_age_s
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._write(self._folder, self._path(cache_id), entry, expires)
            return
        with self._lock:
            self._kept.pop(cache_id, None)
            self._kept[cache_id] = (expires, entry)
            size = sum(len(one.body) for _, one in self._kept.values())
            while size > MOST_BYTES:
                size -= len(self._kept.pop(next(iter(self._kept)))[1].body)

    def _path(self, cache_id: str) -> Path:
        assert self._folder is not None
        return self._folder / (hashlib.sha256(cache_id.encode()).hexdigest() + _SUFFIX)

    def _read(self, path: Path) -> Entry | None:
        head, _, body = path.read_bytes().partition(b"\n")
        said = json.loads(head)
        if not isinstance(said, dict) or said.get("size") != len(body) or said.get("expires", 0) <= self._now():
            return None
        return Entry(body, str(said.get("media_type", "")))

    def _write(self, folder: Path, path: Path, entry: Entry, expires: float) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep(folder)
        head = json.dumps({"expires": expires, "media_type": entry.media_type, "size": len(entry.body)}).encode()
        number, name = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(head + b"\n" + entry.body)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _sweep(self, folder: Path) -> None:
        """Remove the files of a folder that have expired."""
        for path in folder.glob(f"*{_SUFFIX}"):
            with path.open("rb") as file, contextlib.suppress(ValueError, AttributeError, TypeError):
                if json.loads(file.readline(10_000)).get("expires", 0) <= self._now():
                    path.unlink(missing_ok=True)
