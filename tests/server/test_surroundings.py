"""What an invocation changes of its process is as before for the next."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from invoker.server.surroundings import Surroundings


@pytest.fixture(autouse=True)
def _as_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEPT", "kept")
    mask = os.umask(0o022)
    yield
    os.umask(mask)


def test_folder_environment_and_umask_come_back(tmp_path):
    """Whatever was changed, taken away or added."""
    before = dict(os.environ)
    one = Surroundings()
    os.chdir("/")
    os.environ["LEFT"] = "left"
    os.environ["KEPT"] = "other"
    del os.environ["PATH"]
    os.umask(0)
    assert one.restore()
    assert dict(os.environ) == before
    assert Path.cwd() == tmp_path
    (tmp_path / "made").touch()
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644


def test_a_folder_that_is_gone_cannot_come_back(tmp_path, monkeypatch):
    """Then the process is of no use for another call."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    one = Surroundings()
    os.chdir("/")
    gone.rmdir()
    assert not one.restore()
