"""Forgets the modules that a test has written and imported."""

from __future__ import annotations

import sys
from pathlib import Path


def forget(folder: Path, before: set[str]) -> None:
    """Forget the modules of a folder.

    Those of libraries that were imported meanwhile stay: numpy, for one, cannot be imported twice.

    Args:
        folder: Where the test has written.
        before: Names of the modules that were there before.
    """
    new = set(sys.modules) - before
    for name in [one for one in new if _is_within(folder, one.partition(".")[0])]:
        del sys.modules[name]


def _is_within(folder: Path, name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or Path(file).is_relative_to(folder)
