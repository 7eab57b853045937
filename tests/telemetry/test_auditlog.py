"""`AuditLog`: lines are appended by a thread, to a file that may be moved."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from invoker.telemetry import auditlog
from invoker.telemetry.auditlog import AuditLog
from tests.conftest import SLOW


def line(told: Any) -> bytes:
    """As JSON."""
    return json.dumps(told).encode() + b"\n"


def lines_of(path: Path) -> list[Any]:
    """What the file has."""
    return [json.loads(one) for one in path.read_text().splitlines()]


def test_T167_lines_are_appended_in_their_order(tmp_path: Path) -> None:
    """Nobody else can read the file."""
    path = tmp_path / "audit.log"
    path.write_text('"before"\n')
    audit = AuditLog(str(path), line)
    assert audit.is_well is None
    for n in range(1000):
        audit.put(n)
    audit.close()
    assert lines_of(path) == ["before", *range(1000)]
    assert (audit.is_well, audit.errors) == (True, 0)
    fresh = AuditLog(str(tmp_path / "new.log"), line)
    fresh.put(1)
    fresh.close()
    assert (tmp_path / "new.log").stat().st_mode & 0o777 == 0o600


def test_T167_a_thread_writes_without_being_asked(tmp_path: Path) -> None:
    """Soon."""
    path, made = tmp_path / "audit.log", threading.Event()

    def noted(told: Any) -> bytes:
        made.set()
        return line(told)

    audit = AuditLog(str(path), noted)
    audit.put(1)
    assert made.wait(5)
    audit.flush()  # waits for the thread
    assert lines_of(path) == [1]
    audit.close()


def test_T167_a_file_that_was_moved_or_deleted_is_opened_anew(tmp_path: Path) -> None:
    """As logrotate does it."""
    path = tmp_path / "audit.log"
    audit = AuditLog(str(path), line)
    audit.put(1)
    audit.flush()
    path.rename(tmp_path / "audit.log.1")
    audit.put(2)
    audit.flush()
    assert (lines_of(tmp_path / "audit.log.1"), lines_of(path)) == ([1], [2])
    path.unlink()
    audit.put(3)
    audit.close()
    assert lines_of(path) == [3]


def test_T168_what_cannot_be_written_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is told once; the log goes on as soon as it can."""
    path = tmp_path / "no" / "audit.log"
    audit = AuditLog(str(path), line)
    for n in range(3):
        audit.put(n)
        audit.flush()
    assert (audit.is_well, audit.errors) == (False, 3)
    assert sum("lines of the audit log are lost" in one.message for one in caplog.records) == 1
    path.parent.mkdir()
    audit.put(4)
    audit.close()
    assert lines_of(path) == [4]
    assert (audit.is_well, audit.errors) == (True, 3)


def test_T168_a_full_device_fails_nothing() -> None:
    """A write that fails is no error of who put the line."""
    audit = AuditLog("/dev/full", line)
    audit.put(1)
    audit.close()
    assert (audit.is_well, audit.errors) == (False, 1)


def test_T168_a_line_that_cannot_be_made_is_lost_alone(tmp_path: Path) -> None:
    """The others are written."""
    audit = AuditLog(str(tmp_path / "a"), line)
    for one in (1, object(), 2):
        audit.put(one)
    audit.close()
    assert lines_of(tmp_path / "a") == [1, 2]
    assert audit.errors == 1


def test_T168_more_lines_than_may_wait_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded though the disk is stuck."""
    monkeypatch.setattr(auditlog, "_MOST", 2)
    audit = AuditLog(str(tmp_path / "a"), line)
    with audit._lock:  # a write that does not end
        audit._thread = threading.current_thread()
        for n in range(5):
            audit.put(n)
    audit._thread = None
    audit.close()
    assert lines_of(tmp_path / "a") == [0, 1]
    assert audit.errors == 3


def test_T167_standard_error_gets_pieces_that_a_pipe_takes_whole(capfd: pytest.CaptureFixture[str]) -> None:
    """So that lines of several workers do not mix."""
    pieces = auditlog._pieces([b"x" * 3000, b"y" * 1000, b"z" * 200, b"w" * 9000])
    assert [[len(one) for one in piece] for piece in pieces] == [[3000, 1000], [200], [9000]]
    audit = AuditLog("stderr", line)
    audit.put("here")
    audit.close()
    assert '"here"\n' in capfd.readouterr().err


@pytest.mark.leaks_threads
def test_the_end_does_not_wait_for_a_reader_that_stands_still(monkeypatch, caplog):
    """The thread that writes is left where it is, and the log says that lines are lost."""
    ours, theirs = os.pipe()
    audit = AuditLog("stderr", bytes)
    monkeypatch.setattr(AuditLog, "_open", lambda self: theirs)
    audit.put(b"x" * 200_000 + b"\n")
    while audit._waiting:
        time.sleep(0.01)
    began = time.monotonic()
    audit.close()
    assert time.monotonic() - began < 2 * SLOW
    assert "its output cannot be written" in caplog.text
    while audit._thread.is_alive():
        os.read(ours, 1 << 20)
        audit._thread.join(0.01)
    os.close(ours)
    os.close(theirs)
