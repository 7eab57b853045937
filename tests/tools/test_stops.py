"""Stopping what tests run in; ``python -m tools stops`` does that for as long as they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import stops

_PARENT = "import subprocess, sys; subprocess.run(['cat'])"

_TESTS = '''
import time


def test_of_a_clock():
    """Nothing of this takes a tenth of a second, unless its process stands still."""
    times = [time.monotonic()]
    while len(times) < 500:
        time.sleep(0.002)
        times.append(time.monotonic())
    assert max(later - earlier for earlier, later in zip(times, times[1:])) < 0.1


def test_of_events():
    """Nor of this, but it does not care."""
    for _ in range(500):
        time.sleep(0.002)
'''


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_family_is_a_process_with_all_that_it_has_started() -> None:
    """Those of others are not."""
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=subprocess.PIPE) as parent:
        while len(found := stops.family(parent.pid)) < 2:
            time.sleep(0.01)
        (child,) = found[1:]
        assert found[0] == parent.pid
        assert parent.pid in stops.family(os.getpid())
        assert stops.family(child) == [child]
        assert parent.stdin is not None
        parent.stdin.close()


def test_a_process_is_stopped_for_as_long_as_was_said_and_goes_on() -> None:
    """One that has gone is left alone."""
    waited = list[float]()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            while _state(process.pid) != "T":
                time.sleep(0.001)

        assert stops.stop(process.pid, 0.25, sleep)
        assert process.communicate(b"goes on") == (b"goes on", None)
    assert waited == [0.25]
    assert not stops.stop(process.pid, 0.25, sleep)
    assert waited == [0.25]


def test_a_process_that_is_stopped_already_stays_stopped() -> None:
    """Else a test that has stopped it would see it go on."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        process.send_signal(signal.SIGSTOP)
        while _state(process.pid) != "T":
            time.sleep(0.001)
        assert not stops.stop(process.pid, 0.0)
        assert _state(process.pid) == "T"
        process.kill()


@pytest.mark.timeout(30)
def test_a_test_of_a_clock_fails_and_one_of_events_does_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The code is that of pytest, which is given the rest."""
    path = tmp_path / "test_both.py"
    path.write_text(_TESTS)
    often = ("--every-s", "0.2", "--for-s", "0.2", "-n", "0", "-p", "no:cacheprovider", str(path))
    assert stops.main([*often, "-k", "clock"]) == 1
    assert stops.main([*often, "-k", "events"]) == 0
    said = capfd.readouterr().out
    assert "1 failed, 1 deselected" in said
    assert "1 passed, 1 deselected" in said
    assert "stops of 0.2 s, chosen by --stops-seed" in said
