"""The board of numbers that workers share."""

from __future__ import annotations

import os

import pytest

from invoker.telemetry.board import ROW_BYTES, Board, Numbers, Row


@pytest.fixture
def board():
    """An empty one."""
    made = Board.make()
    yield made
    made.close()


def numbers(count, gauge=0):
    return Numbers({"calls": count}, {"running": gauge})


def test_numbers_are_added_name_by_name():
    """A name that only one side has counts as it stands."""
    added = Numbers({"a": 1, "b": 2}, {"g": 1}).plus(Numbers({"b": 3, "c": 4}, {"h": 2}))
    assert (added.counters, added.gauges) == ({"a": 1, "b": 5, "c": 4}, {"g": 1, "h": 2})


def test_an_empty_board_has_no_numbers(board):
    """Nobody has written yet."""
    assert board.read() == {}
    assert board.total() == Numbers()


def test_the_rows_of_all_workers_are_summed(board):
    """Whatever the order in which they were written."""
    board.write(2, Row(2, numbers=numbers(5, 1)))
    assert board.total() == numbers(5, 1)
    board.write(1, Row(1, numbers=numbers(3, 2)))
    assert board.total() == numbers(8, 3)
    board.write(1, Row(1, numbers=numbers(4, 0)))
    assert board.total() == numbers(9, 1)


def test_a_dead_workers_counters_stay_and_its_gauges_go(board):
    """They are seen once: in its row before, in the supervisor's after, and its row may be taken by another."""
    board.write(1, Row(1, numbers=numbers(3, 2)))
    board.write(0, Row(numbers=Numbers({"calls": 3}), added={1: 1}))
    assert board.total().counters == {"calls": 3}
    assert board.total().gauges == {}
    board.write(1, Row(7, numbers=numbers(10, 1)))
    assert board.total() == numbers(13, 1)


def test_a_row_that_was_torn_is_left_out(board):
    """A worker that is killed while it writes spoils nothing but its own row."""
    board.write(1, Row(1, numbers=numbers(3)))
    board.write(2, Row(2, numbers=numbers(5)))
    data = os.pread(board.handle, 4096, ROW_BYTES)
    assert b'"calls":3' in data
    os.pwrite(board.handle, data.replace(b'"calls":3', b'"calls":9'), ROW_BYTES)
    assert board.total().counters == {"calls": 5}


def test_each_write_is_a_beat(board):
    """Whoever watches sees that the writer lives."""
    board.write(1, Row(1))
    first = board.read()[1].beat
    board.write(1, Row(1))
    assert board.read()[1].beat > first > 0


def test_a_system_without_memory_files_takes_a_nameless_one(monkeypatch):
    """The same, in the directory for temporary files."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    made = Board.make()
    made.write(1, Row(1, numbers=numbers(3)))
    assert made.total().counters == {"calls": 3}
    made.close()


def test_too_many_names_are_our_own_mistake(board, monkeypatch):
    """A row has its bytes, and no name comes from outside."""
    monkeypatch.setattr("invoker.telemetry.board.ROW_BYTES", 256 * 1024)
    with pytest.raises(AssertionError, match="although there are few names"):
        board.write(1, Row(1, numbers=Numbers({f"a name that is rather long {n}": 1 for n in range(8000)})))


def test_a_row_may_be_long_and_short_again(board):
    """What it had before does not show, and rows that are far apart take no memory for that."""
    many = Numbers({f"a name that is rather long {n}": 1 for n in range(30_000)})
    board.write(3, Row(1, numbers=many))
    assert board.total() == many
    board.write(3, Row(1, numbers=numbers(3)))
    assert board.total() == numbers(3)
    assert os.fstat(board.handle).st_blocks * 512 < 8 * 1024 * 1024


def test_a_row_that_is_being_written_is_read_again(board, monkeypatch):
    """It is whole a moment later; a row that stays torn does not keep the reader."""
    board.write(1, Row(1, numbers=numbers(3)))
    read, spoilt = os.pread, iter([True, False, True])

    def torn(handle, size, at):
        data = read(handle, size, at)
        return data.replace(b'"calls":3', b'"calls":9') if b"calls" in data and next(spoilt) else data

    monkeypatch.setattr(os, "pread", torn)
    assert board.total() == numbers(3)
    assert next(spoilt)


def test_a_closed_board_holds_no_file():
    """Its handle is free for others."""
    made = Board.make()
    made.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made.handle)
