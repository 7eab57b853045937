"""`Surroundings`: restores the state of a child process that an invocation could leave changed for the next."""

from __future__ import annotations

import os


class Surroundings:
    """Records the state that a function may change (current folder, environment, file mode) after the start hooks."""

    def __init__(self) -> None:
        self._environment = os.environ.copy()
        self._folder = os.getcwd()  # noqa: PTH109 - as chdir takes it
        self._mask = _umask()

    def restore(self) -> bool:
        """Restore everything for the next invocation; returns whether that was possible."""
        if os.environ.copy() != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        os.umask(self._mask)
        try:
            os.chdir(self._folder)
        except OSError:
            return False
        return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
