"""Tests of what the command line sends."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from invoker.connect import sources
from invoker.connect.failure import UsageError
from invoker.connect.sources import Framing, Part, frames, is_json, is_text

LINES = Framing()
JSON = Framing(is_json=True)


async def sent(framing: Framing, *parts: Part) -> list[bytes]:
    return [payload async for payload in frames(parts, framing)]


def file(tmp_path: Path, content: bytes) -> Part:
    path = tmp_path / "values"
    path.write_bytes(content)
    return Part(path=str(path))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\nb\r", [b"a", b"b"]),
        (b"\n\na\n", [b"", b"", b"a"]),
        (b"x" * 200_000 + b"\ny\n", [b"x" * 200_000, b"y"]),
    ],
)
async def test_line_is_a_frame(tmp_path: Path, content: bytes, lines: list[bytes]) -> None:
    """Without its end, empty lines included, and also when it is longer than one read."""
    assert await sent(LINES, file(tmp_path, content)) == lines


async def test_raw_is_one_frame_unchanged(tmp_path: Path) -> None:
    """An empty file is an empty value."""
    assert await sent(Framing(is_raw=True), file(tmp_path, b"a\r\nb\n\x00")) == [b"a\r\nb\n\x00"]
    assert await sent(Framing(is_raw=True), file(tmp_path, b"")) == [b""]


async def test_chunks_have_at_most_the_size_asked_for(tmp_path: Path) -> None:
    """The last one is what is left."""
    assert await sent(Framing(is_raw=True, chunk_bytes=4), file(tmp_path, b"abcdefghij")) == [b"abcd", b"efgh", b"ij"]


async def test_parts_follow_each_other(tmp_path: Path) -> None:
    """A literal is one frame, whatever it holds."""
    assert await sent(LINES, Part(b"x\ny"), file(tmp_path, b"a\nb\n"), Part(b"z")) == [b"x\ny", b"a", b"b", b"z"]


async def test_json_is_checked_line_by_line(tmp_path: Path) -> None:
    """Blank lines are left out; the line that is not JSON is named."""
    part = file(tmp_path, b'1\n\n{"a":2}\n  \nnope\n')
    values = frames([part], JSON)
    assert [await anext(values), await anext(values)] == [b"1", b'{"a":2}']
    with pytest.raises(UsageError, match="values, line 5 is not JSON"):
        await anext(values)


async def test_H233_json_leaves_without_a_byte_order_mark(tmp_path: Path) -> None:
    """Of lines, literals and whole files; other text is sent as it is."""
    content = b"\xef\xbb\xbf1\n\xef\xbb\xbf2\n"
    assert await sent(JSON, file(tmp_path, content), Part(b"\xef\xbb\xbf3")) == [b"1", b"2", b"3"]
    assert await sent(Framing(is_raw=True, is_json=True), file(tmp_path, b"\xef\xbb\xbf[1]")) == [b"[1]"]
    assert await sent(LINES, file(tmp_path, content)) == [b"\xef\xbb\xbf1", b"\xef\xbb\xbf2"]


async def test_literal_json_is_checked() -> None:
    """With a hint at plain text."""
    with pytest.raises(UsageError, match=r"the value given is not JSON: .*; for plain text leave application/json out"):
        await sent(JSON, Part(b"hello"))


@pytest.mark.parametrize("content", [b"[" * 100_000, b'"\xff"'])
async def test_json_that_upsets_the_parser_is_not_json(tmp_path: Path, content: bytes) -> None:
    """Too deep, or not UTF-8."""
    with pytest.raises(UsageError, match="is not JSON"):
        await sent(JSON, file(tmp_path, content))


async def test_missing_file_is_named(tmp_path: Path) -> None:
    """With the reason of the system."""
    with pytest.raises(UsageError, match=r"cannot read .*/nothing: No such file or directory"):
        await sent(LINES, Part(path=str(tmp_path / "nothing")))


async def test_line_travels_when_it_was_written(tmp_path: Path) -> None:
    """Not when the file ends: a pipe stays open."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    async with aclosing(frames([Part(path=str(path))], LINES)) as values:
        first = asyncio.ensure_future(anext(values))
        writer = await asyncio.to_thread(path.open, "wb", buffering=0)
        writer.write(b"one\ntw")
        assert await first == b"one"
        second = asyncio.ensure_future(anext(values))
        writer.write(b"o\n")
        assert await second == b"two"
        writer.close()


async def test_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory."""
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 100_000)
    with pytest.raises(UsageError, match="is longer than"):
        await sent(LINES, file(tmp_path, b"x" * 200_000))
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 3000)
    monkeypatch.setattr(sources, "READ_BYTES", 1000)
    assert len(await sent(LINES, file(tmp_path, (b"x" * 1000 + b"\n") * 300))) == 300  # it is not the sum of the lines


@pytest.mark.parametrize(
    ("media_type", "text", "json"),
    [
        ("text/plain", True, False),
        ("Text/CSV; header=present", True, False),
        ("application/json", True, True),
        ("application/json; charset=UTF_8", True, True),
        ("application/json; charset=utf-16", True, False),
        ("application/cloudevents+json", True, True),
        ("image/svg+xml", True, False),
        ("application/x-www-form-urlencoded", True, False),
        ("application/octet-stream", False, False),
        ("image/png", False, False),
        ("", False, False),
        ("nonsense", False, False),
    ],
)
def test_kinds_of_media_types(media_type: str, text: bool, json: bool) -> None:
    """Text is sent and shown by lines, JSON is checked."""
    assert (is_text(media_type), is_json(media_type)) == (text, json)
