"""Writes the values that a call gives: text as lines on stdout, other types unchanged, or into files."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from invoker.connect.failure import UsageError
from invoker.connect.sources import is_text
from invoker.errors.wording import printable, shown
from invoker.mediatypes import parse
from invoker.protocols.riff.client.frames import Received

STDOUT = "-"


class Printer:
    """Writes values as they arrive, and flushes each.

    A value of a text type is printed as a line; a newline is added if it has none at its end. Other values are written
    unchanged, but to a terminal only if ``-`` was named as the file.

    Args:
        files: Path by index of the output; ``-`` is stdout.
        rest: The path for all other outputs; empty: stdout.
        is_several: Whether lines on stdout begin with the name of their output.
        is_raw: Whether text, too, is written unchanged.
        show_headers: Whether the media type and headers of each value are printed to stderr.
    """

    def __init__(
        self,
        *,
        files: Mapping[int, str] | None = None,
        rest: str = "",
        is_several: bool = False,
        is_raw: bool = False,
        show_headers: bool = False,
    ) -> None:
        self._files = dict(files or {})
        self._rest = rest
        self._is_several = is_several
        self._is_raw = is_raw
        self._show_headers = show_headers
        self._opened: dict[str, BinaryIO] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._opened.values():
            file.close()

    def write(self, out: Received) -> None:
        """Write one value.

        Raises:
            UsageError: The value is not text and would go to a terminal.
            OSError: The value cannot be written.
        """
        name = (out.name or str(out.index)) if self._is_several or out.index else ""
        if self._show_headers:
            self._write_headers(out, name)
        path = self._files.get(out.index, self._rest)
        if path and path != STDOUT:
            # In UTF-16 and UTF-32 a newline is more than one byte: such a file gets the payloads unchanged.
            wide = is_text(out.media_type) and _charset(out.media_type).startswith(("utf-16", "utf-32"))
            is_line = is_text(out.media_type) and not self._is_raw and not wide
            self._write_to(self._file(path), _line(out.payload) if is_line else out.payload)
            return
        if not path and not is_text(out.media_type) and sys.stdout.isatty():
            # The media type decides, not the bytes: whether an output is shown must not depend on its values.
            raise UsageError(
                f"output {name or out.index} is {out.media_type or 'of no media type'}, which may upset the terminal; "
                "give --output FILE, or --output - to print it all the same"
            )
        payload = self._shown(out, name)
        if not path and sys.stdout.isatty():
            payload = shown(payload.decode(errors="replace")).encode()
        self._write_to(sys.stdout.buffer, payload)

    def _shown(self, out: Received, name: str) -> bytes:
        if self._is_raw or not is_text(out.media_type):
            return out.payload
        try:
            line = _line(out.payload.decode(_charset(out.media_type)).encode())
        except UnicodeError:
            line = _line(out.payload)  # the bytes are not in that charset, so they are shown unchanged
        if not name:
            return line
        prefix = f"{name}: ".encode()
        return b"".join(prefix + part for part in line.splitlines(keepends=True))

    def _write_headers(self, out: Received, name: str) -> None:
        prefix = f"< {name}: " if name else "< "
        print(printable(f"{prefix}content-type: {out.media_type}"), file=sys.stderr)
        for key, value in out.headers.items():
            print(printable(f"{prefix}{key}: {value}"), file=sys.stderr, flush=True)

    def _file(self, path: str) -> BinaryIO:
        if path not in self._opened:
            self._opened[path] = Path(path).open("wb")  # noqa: SIM115 - open until __exit__
        return self._opened[path]

    @staticmethod
    def _write_to(file: BinaryIO, payload: bytes) -> None:
        file.write(payload)
        file.flush()


def _line(payload: bytes) -> bytes:
    return payload if payload.endswith(b"\n") else payload + b"\n"


def _charset(media_type: str) -> str:
    """The charset of a text type; UTF-8 if Python does not support it."""
    charset = parse(media_type).charset or "utf-8"
    try:
        return codecs.lookup(charset).name
    except LookupError:
        return "utf-8"
