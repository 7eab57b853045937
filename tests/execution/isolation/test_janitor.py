"""The janitor kills what is left when the serving process is gone."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from invoker.execution.isolation.pool import Janitor
from tests.conftest import SLOW


@pytest.mark.parametrize("is_told_of_its_end", [False, True])
def test_what_is_left_of_a_group_is_killed(is_told_of_its_end: bool) -> None:
    """Of one that has ended nothing is left, so its number may be another's; other groups are left alone."""
    group, other = (subprocess.Popen(["sleep", "60"], process_group=0) for _ in range(2))
    janitor = Janitor()
    try:
        janitor.began(group.pid)
        janitor.began(other.pid)
        janitor.ended(other.pid)
        if is_told_of_its_end:
            janitor.ended(group.pid)
        assert janitor._process is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(janitor._process.pid, number)
        janitor.close()  # its end of the pipe closes, as when the process is killed
        if is_told_of_its_end:
            assert group.poll() is None
        else:
            assert group.wait(5 * SLOW) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for one in (group, other):
            one.kill()
            one.wait()


def test_a_janitor_that_was_killed_harms_nobody() -> None:
    """Nothing can be told to it any more."""
    janitor = Janitor()
    janitor.began(1 << 22)
    assert janitor._process is not None
    janitor._process.kill()
    janitor._process.wait()
    janitor.ended(1 << 22)
    janitor.close()
