"""The log's writer: nobody waits for a reader, and what a reader missed is counted."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from invoker.telemetry.logwriter import LogWriter
from tests.conftest import SLOW


@contextmanager
def piped(**given: int) -> Iterator[tuple[int, LogWriter]]:
    """The end of a pipe to read, and a writer to the other one."""
    ours, theirs = os.pipe()
    writer = LogWriter(theirs, **given)
    writer.lost = "{} were dropped\n".format
    writer.start()
    try:
        yield ours, writer
    finally:
        os.set_blocking(ours, False)
        reader = threading.Thread(target=everything, args=(ours, writer))
        reader.start()
        writer.end()
        reader.join()
        os.close(ours)
        os.close(theirs)


def everything(ours: int, writer: LogWriter) -> list[str]:
    """All lines, read until the writer has nothing left."""
    os.set_blocking(ours, False)
    found, until = b"", time.monotonic() + 5 * SLOW
    while time.monotonic() < until:
        try:
            found += os.read(ours, 1 << 20)
        except BlockingIOError:
            if writer.drain(0.05):
                break
    with suppress(BlockingIOError):
        found += os.read(ours, 1 << 20)
    return found.decode().splitlines()


@pytest.mark.parametrize("size", [10, 3_000, 70_000])
def test_a_reader_that_stands_still_delays_nobody(size):
    """Whatever is written; when it reads again, all lines are there, in their order."""
    lines = [f"{number} {'x' * size}" for number in range(2_000_000 // size // 10)]
    with piped() as (ours, writer):
        began = time.monotonic()
        for line in lines:
            writer.write(line + "\n")
        assert time.monotonic() - began < SLOW
        assert everything(ours, writer) == lines
        assert writer.dropped == 0


def test_what_has_no_room_is_counted_where_it_is_missing():
    """As soon as there is room; what is written then stands behind it."""
    with piped(most=10_000) as (ours, writer):
        for number in range(100_000):
            writer.write(f"{number}\n")
        assert writer.dropped > 0
        found = everything(ours, writer)
        numbers = [int(line) for line in found if line.isdigit()]
        told = [int(line.split()[0]) for line in found if not line.isdigit()]
        assert (len(numbers), sum(told)) == (100_000 - writer.dropped, writer.dropped)
        assert numbers == sorted(numbers)
        writer.write("more\n")
        assert everything(ours, writer) == ["more"]


def test_what_was_dropped_stands_before_what_came_later():
    """Though something waits at every moment."""
    with piped(most=200_000) as (ours, writer):
        while not writer.dropped:
            writer.write("early\n" * 100)
        until = time.monotonic() + SLOW
        while writer._has_gap and time.monotonic() < until:
            os.read(ours, 1 << 20)
            writer.write("later\n")
        found = everything(ours, writer)
        (told,) = [line for line in found if line.endswith("were dropped")]
        assert int(told.split()[0]) == writer.dropped
        assert found.index(told) < found.index("later")


def test_a_reader_that_keeps_up_has_each_line_at_once():
    """In the thread that writes, so a process that dies afterwards has told it."""
    with piped() as (ours, writer):
        for number in range(10_000):
            writer.write(f"{number}\n")
            assert os.read(ours, 100) == b"%d\n" % number


def test_the_end_waits_for_a_slow_reader_but_not_for_none():
    """All is written for who reads a little now and then."""
    with piped() as (ours, writer):
        for _ in range(30):
            writer.write("x" * 9_999 + "\n")
        began = time.monotonic()
        assert not writer.drain(0.05)
        assert time.monotonic() - began < SLOW
        found: list[bytes] = []

        def read() -> None:
            while sum(map(len, found)) < 300_000:
                found.append(os.read(ours, 20_000))

        slow = threading.Thread(target=read)
        slow.start()
        assert writer.drain(5 * SLOW)
        slow.join()


@pytest.mark.parametrize("full", ["/dev/full", ""])
def test_what_cannot_be_written_harms_nobody(full):
    """A full disk, and a reader that has gone."""
    if full:
        descriptor = os.open(full, os.O_WRONLY)
    else:
        ours, descriptor = os.pipe()
        os.close(ours)
    writer = LogWriter(descriptor)
    writer.start()
    for _ in range(10):
        assert writer.write("a line\n" * 1000) == 7000
    assert writer.drain()
    assert writer.dropped == 10_000
    writer.end()
    os.close(descriptor)


def test_a_fork_writes_for_itself():
    """Not what waits in the process that it comes of, which writes that itself."""
    with piped() as (ours, writer):
        for _ in range(30):
            writer.write("x" * 9_999 + "\n")
        pid = os.fork()
        if not pid:
            ours_now, theirs_now = os.pipe()
            writer._descriptor = theirs_now
            writer.write("of the fork\n")
            os._exit(0 if os.read(ours_now, 100) == b"of the fork\n" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(everything(ours, writer)) == 30


def test_signs_that_the_encoding_lacks_are_escaped():
    """Also those that no encoding has."""
    ours, theirs = os.pipe()
    LogWriter(theirs, "ascii").write("a\u00e9\ud800\n")
    assert os.read(ours, 100) == b"a\\xe9\\ud800\n"
    os.close(ours)
    os.close(theirs)
