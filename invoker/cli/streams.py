"""Makes sure that the standard streams of a command are open when it begins, and that its output is written at its end.

If a standard descriptor were closed, the next file or socket would get its number, and text for a terminal would be
written into that. And if output cannot be written at the end, Python exits with 120 and reports nothing.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def with_streams(run: Callable[[], int]) -> int:
    """Run a command, and return its exit code. It is not 0 if the output of the command could not be written."""
    _stand_in()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the locale does not have are escaped
    why: str | None = ""
    try:
        code = run()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        code, why = 1, error.strerror  # writing to stdout has failed before
    why = _lost(sys.stdout) or why
    if why:
        code = code or 1
        with suppress(OSError):  # the error cannot be printed either
            print(f"error: the output cannot be written: {why}", file=sys.stderr)
    _lost(sys.stderr)
    return code


def arguments() -> list[str]:
    """The arguments of the command line, decoded as UTF-8 even if the locale is ASCII."""
    if sys.getfilesystemencoding() == "utf-8":
        return sys.argv[1:]
    return [os.fsencode(one).decode(errors="surrogateescape") for one in sys.argv[1:]]


def _stand_in() -> None:
    """Replace closed standard streams by ``os.devnull``."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # `open` takes the lowest free number, which is this one
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115


def _lost(stream: Any) -> str:
    """Flush a stream; returns the reason if the output cannot be written and is dropped, otherwise ""."""
    try:
        stream.flush()
    except (OSError, ValueError) as error:
        with suppress(ValueError), Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        return getattr(error, "strerror", None) or str(error)
    return ""
