"""Makes the frames that the command line sends, from literals, and from lines or chunks of files and stdin.

Files and stdin are read by a daemon thread (`pull`), straight from the descriptor: the loop never waits for a terminal,
a line is sent when it has been typed, and a read that never returns cannot delay the end of the process.
"""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from invoker.connect.failure import UsageError
from invoker.connect.feeds import pull
from invoker.mediatypes import parse

STDIN = "-"
READ_BYTES = 1 << 16
MAX_LINE_BYTES = 64 << 20

_TEXTS = {
    "application/javascript",
    "application/json",
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "application/xml",
    "application/yaml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """The options for splitting the bytes of a file into frames.

    Attributes:
        is_raw: Whether the file is not split into lines.
        chunk_bytes: With ``is_raw``, the most bytes of one frame, which is sent when they arrive; 0: the whole file is
            one frame.
        is_json: Whether every frame must be JSON; blank lines are left out.
        hint: The advice at the end of the error for frames that are not JSON.
    """

    is_raw: bool = False
    chunk_bytes: int = 0
    is_json: bool = False
    hint: str = "for plain text leave application/json out"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an input: the bytes of one frame, or a file (`STDIN` for stdin) with frames."""

    literal: bytes = b""
    path: str = ""


def is_text(media_type: str) -> bool:
    """Whether payloads of a type are lines that a terminal can show."""
    try:
        parsed = parse(media_type)
    except ValueError:
        return False
    return parsed.type == "text" or parsed.essence in _TEXTS or parsed.suffix in {"json", "xml", "yaml"}


def is_json(media_type: str) -> bool:
    """Whether payloads of a type are JSON in UTF-8, so that they can be checked before they are sent."""
    try:
        parsed = parse(media_type)
    except ValueError:
        return False
    is_utf8 = (parsed.charset or "utf-8").lower().replace("_", "-") in {"utf-8", "utf8"}
    return is_utf8 and (parsed.essence == "application/json" or parsed.suffix == "json")


async def frames(parts: Iterable[Part], framing: Framing) -> AsyncGenerator[bytes, None]:
    """The payloads of one input, one part after the other.

    Raises:
        UsageError: A file cannot be read, or a payload is not valid JSON.
    """
    for part in parts:
        if not part.path:
            yield _checked(part.literal, framing, "the value given")
            continue
        label = "stdin" if part.path == STDIN else part.path
        number = 0
        async with aclosing(pull(_read(part.path, label, framing))) as batches:
            async for batch in batches:
                for payload in batch:
                    number += 1
                    if framing.is_json and not payload.strip():
                        continue
                    yield _checked(payload, framing, label if framing.is_raw else f"{label}, line {number}")


def _checked(payload: bytes, framing: Framing, label: str) -> bytes:
    """Check a payload, and remove a byte order mark from JSON, which editors write and some servers do not accept."""
    if framing.is_json and not framing.chunk_bytes:
        payload = payload.removeprefix(BOM_UTF8)
        try:
            msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            why = str(error).removeprefix("JSON is malformed: ")
            raise UsageError(f"{label} is not JSON: {why}; {framing.hint}") from None
    return payload


def _read(path: str, label: str, framing: Framing) -> Iterator[list[bytes]]:
    """Yield frames in batches, one batch for each read, so that threads are switched once a read, not once a line."""
    try:
        if path != STDIN:
            descriptor = os.open(path, os.O_RDONLY)
        elif sys.stdin is None:
            return  # the program that started this one has closed stdin
        else:
            descriptor = sys.stdin.fileno()
        try:
            chunks = _chunks(descriptor, framing.chunk_bytes or READ_BYTES)
            if not framing.is_raw:
                yield from _lines(chunks, label)
            elif framing.chunk_bytes:
                for chunk in chunks:
                    yield [chunk]
            else:
                yield [b"".join(chunks)]
        finally:
            if path != STDIN:
                os.close(descriptor)
    except OSError as error:
        raise UsageError(f"cannot read {label}: {error.strerror}") from None


def _chunks(descriptor: int, size: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, size):
        yield chunk


def _lines(chunks: Iterator[bytes], label: str) -> Iterator[list[bytes]]:
    begun: list[bytes] = []  # the pieces of an unfinished line
    size = 0
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > MAX_LINE_BYTES:
            raise UsageError(f"a line of {label} is longer than {MAX_LINE_BYTES >> 20} MiB; send it with --raw")
        if rest:
            lines = [b"".join(begun), *rest[:-1]]
            begun, size = [rest[-1]], len(rest[-1])
            yield [line.removesuffix(b"\r") for line in lines]
    if last := b"".join(begun):
        yield [last.removesuffix(b"\r")]
