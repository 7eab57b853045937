"""`tests.attack.runner`: an attack that does nothing costs nothing, and a victim that stands still is noticed."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.attack.runner import Figures, Victim, probed, victim

pytestmark = pytest.mark.timeout(20)


def test_the_probe_counts_answers_and_measures_the_longest() -> None:
    """Of a victim at rest all are answered; of one that is stopped for half a second, one takes that long."""

    def nothing(target: Victim, seconds: float) -> Figures:
        time.sleep(seconds)
        return {"done": 1}

    def stop(target: Victim, seconds: float) -> Figures:
        os.kill(target.process.pid, signal.SIGSTOP)
        threading.Event().wait(seconds)
        os.kill(target.process.pid, signal.SIGCONT)
        return {}

    with victim() as target:
        calm = probed(nothing, target, 0.2)
        assert (calm.failures, calm.lines, calm.figures) == (0, 0, {"done": 1})
        assert calm.answers
        assert 10 << 20 < calm.rss_bytes < 500 << 20
        assert "livez=" in str(calm)
        assert probed(stop, target, 0.5).livez_s >= 0.4
