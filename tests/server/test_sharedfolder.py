"""The folder that a supervisor and its workers share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from invoker.server.sharedfolder import SharedFolder

HOLDS = "import sys, time; from pathlib import Path; from invoker.server.sharedfolder import SharedFolder; "
HOLDS += "folder = SharedFolder(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read(); folder.leave()"


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def holder(path: Path) -> subprocess.Popen[bytes]:
    made = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdout is not None
    assert made.stdout.readline() == b"held\n"
    return made


def let_go(one: subprocess.Popen[bytes]) -> None:
    with one:
        one.communicate()


def made() -> SharedFolder:
    folder = SharedFolder.make()
    assert folder is not None
    (folder.path / "store.db").write_text("secret")
    return folder


def test_the_last_that_leaves_removes_it():
    """In whatever order; a process that was killed holds nothing."""
    folder = made()
    one, other = holder(folder.path), holder(folder.path)
    folder.leave()
    assert folder.path.exists()
    one.kill()
    let_go(one)
    assert folder.path.exists()
    let_go(other)
    assert not folder.path.exists()


def test_the_next_one_removes_what_nobody_holds():
    """Unless it is held, or young, or somebody else's."""
    held, young, left = made(), made(), made()
    for one in (held, left):
        os.utime(one.path / "lock", (1, 1))
    for one in (young, left):
        os.close(one._lock)
    other = left.path.with_name("invoker-of-another-kind")
    other.mkdir()
    newest = made()
    assert [one.path.exists() for one in (held, young, left, newest)] == [True, True, False, True]
    assert other.exists()
    held.remove()
    newest.remove()
    assert not held.path.exists()


def test_without_a_place_there_is_none(monkeypatch):
    """Which its caller tells."""
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **given: (_ for _ in ()).throw(OSError("read-only")))
    assert SharedFolder.make() is None
