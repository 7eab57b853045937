"""`SharedFolder`: a temporary folder of a supervisor and its workers, which is removed by the last of them.

Each of them holds a lock on a file in it, which the kernel releases however a process ends. So a process that ends
after the supervisor was killed can find out whether others remain, and a later supervisor removes folders whose lock is
free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

_PREFIX: Final = "invoker-"
_LOCK: Final = "lock"
_FRESH_S: Final = 60.0
"""Folders younger than this many seconds are kept, since their lock may not be taken yet."""


class SharedFolder:
    """A folder for several processes; this process holds a lock on it.

    Args:
        path: The path of the folder, which has been made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    @classmethod
    def make(cls) -> SharedFolder | None:
        """Make a folder, on disk or in memory; None where nothing is writable, as in some containers."""
        for given in ("", "/dev/shm"):  # noqa: S108 - the folder gets a new, random name
            with contextlib.suppress(OSError):
                place = given or tempfile.gettempdir()
                _sweep(Path(place))
                return cls(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)))
        return None

    def leave(self) -> None:
        """Release the folder; it is removed if no other process holds it."""
        _remove_if_left(self.path, self._lock)

    def remove(self) -> None:
        """Remove the folder, even if other processes still hold it."""
        os.close(self._lock)
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_if_left(folder: Path, lock: int) -> None:
    """Remove a folder if no other process holds its lock; closes the lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process holds it
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _sweep(place: Path) -> None:
    """Remove the folders that killed processes have left."""
    for lock in place.glob(f"{_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            told = lock.lstat()
            if told.st_uid == os.geteuid() and time.time() - told.st_mtime > _FRESH_S:
                _remove_if_left(lock.parent, os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
