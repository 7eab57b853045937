"""``file:`` references: regular files below the roots that an operator allows (E-053, E-054, E-058).

There are two steps. First the path is resolved with all links, and must be below a resolved root; other paths are
refused, whether they exist or not. Then the resolved path is opened part by part, each relative to its directory and
without following links: if a link is put there between the two steps, opening fails. So no check relies on a name that
may mean another file a moment later. The type of the file is checked before it is opened, so that no device is touched,
and again afterwards.

A file is read up to the size that it had when it was opened. So reading ends even if the file grows for ever, and files
of ``/proc``, whose size is 0, have no content even if the check for devices misses them.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote_to_bytes

from invoker.errors import LimitExceeded
from invoker.errors.wording import quoted
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused

_URI = re.compile(r"(?i:file):(?://([^/?#]*))?(/[^?#]*)")
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_PIECE_BYTES = 64 * 1024
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PSEUDO = ("/proc", "/sys")
_GONE = (errno.ENOENT, errno.ENOTDIR)


def path_of(uri: str) -> str:
    """The absolute path that a ``file:`` URI names, percent-decoded once.

    Raises:
        ReferenceRefused: The URI names another machine, is relative, contains ``..``, or is malformed.
    """
    found = _URI.fullmatch(uri)
    if found is None:
        raise ReferenceRefused(
            f"{quoted(uri)} is not a file URI; expected file:///path, with other characters percent-encoded"
        )
    authority, path = found[1] or "", found[2]
    if authority.lower() not in {"", "localhost"}:
        hint = f"the authority of {quoted(uri)} is {quoted(authority)}, which is not this machine"
        raise ReferenceRefused(f"{hint}; a path needs three slashes: file:///path")
    if not _PATH.fullmatch(path):
        raise ReferenceRefused(f"{quoted(uri)} has a character that must be percent-encoded")
    parts = [unquote_to_bytes(part) for part in path[1:].split("/")]
    if any(part in {b"", b".", b".."} or b"\0" in part or b"/" in part for part in parts):
        raise ReferenceRefused(f"{quoted(uri)}: each part of the path must be a name, not '..' or empty")
    return "/" + os.fsdecode(b"/".join(parts))


def read_file(uri: str, roots: Sequence[Path], most: int, give: Callable[[bytes], None]) -> None:
    """Pass the content of a file to ``give``, in pieces; blocks.

    Args:
        uri: A URI of the scheme ``file``.
        roots: Absolute folders; the file must be below one of them.
        most: How many bytes the file may have.
        give: Called with each piece.

    Raises:
        ReferenceRefused, ReferenceFailed, LimitExceeded: The file cannot be read; the texts contain only the path that
            the client sent.
    """
    path = path_of(uri)
    try:
        with open_below(roots, path, shown=quoted(uri)) as (descriptor, size):
            if size > most:
                raise LimitExceeded(f"{quoted(uri)} holds {size} bytes, which exceeds the limit of {most} bytes")
            left = size
            while left:
                piece = os.read(descriptor, min(left, _PIECE_BYTES))
                if not piece:  # the file was truncated while it was read
                    raise ReferenceFailed(f"{quoted(uri)} changed while it was read")
                left -= len(piece)
                give(piece)
    except OSError as error:
        is_missing = error.errno in _GONE
        why = "does not exist" if is_missing else "cannot be read"
        raise ReferenceFailed(f"{quoted(uri)} {why}", is_missing=is_missing) from None


@contextmanager
def open_below(roots: Sequence[Path], path: str, *, shown: str) -> Iterator[tuple[int, int]]:
    """Open a regular file, if it is below a root.

    Args:
        roots: Absolute paths of directories.
        path: An absolute path; links in it are followed if they end below a root.
        shown: The reference, for texts.

    Yields:
        The descriptor of the file, and its size in bytes.

    Raises:
        ReferenceRefused: The path is outside of the roots, or is not a regular file.
        OSError: The file does not exist, or cannot be opened.
    """
    root, parts = _below(roots, path, shown)
    directory = os.open(root, _DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = _open(part, _DIRECTORY, directory, shown)
            os.close(directory)
            directory = inner
        _check(os.stat(parts[-1], dir_fd=directory, follow_symlinks=False), shown)
        descriptor = _open(parts[-1], _FILE, directory, shown)
    finally:
        os.close(directory)
    try:
        status = os.fstat(descriptor)
        _check(status, shown)
        yield descriptor, status.st_size
    finally:
        os.close(descriptor)


def _below(roots: Sequence[Path], path: str, shown: str) -> tuple[str, list[str]]:
    """The resolved root that contains the resolved path, and the parts of the path below it."""
    real = os.path.realpath(path)
    if not real.startswith(tuple(f"{pseudo}/" for pseudo in _PSEUDO)):
        for root in map(os.path.realpath, roots):
            prefix = root.rstrip("/") + "/"
            if real.startswith(prefix):
                return root, real[len(prefix) :].split("/")
    raise ReferenceRefused(f"{shown} is not below a root that is allowed")


def _open(name: str, flags: int, directory: int, shown: str) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP or _is_link(name, directory):
            raise ReferenceRefused(f"{shown} became a link while it was opened") from None
        raise


def _is_link(name: str, directory: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    return False


def _check(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_dev in _pseudo_devices():
        raise ReferenceRefused(f"{shown} is not a regular file")


def _pseudo_devices() -> set[int]:
    """The device numbers of file systems with generated files, such as /proc."""
    devices = set()
    for folder in _PSEUDO:
        with suppress(OSError):
            devices.add(Path(folder).stat().st_dev)
    return devices - {Path("/").stat().st_dev}  # if /proc is a plain folder, it is on the device of /
