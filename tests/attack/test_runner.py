"""`tests.attack.runner`: an attack that does nothing costs nothing, and a victim that stands still is noticed."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from contextlib import closing

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
        stopped = probed(stop, target, 0.5)
        assert stopped.livez_s >= 0.4
        assert 0.1 <= stopped.held_s < stopped.livez_s, "it used no processor: the machine gave it none"


def test_a_victim_that_computes_holds_its_probe() -> None:
    """For as long as it computes, by its own processor time."""

    def compute(target: Victim, seconds: float) -> Figures:
        with closing(http.client.HTTPConnection(*target.http_host, timeout=10)) as connection:
            connection.request("POST", "/hold", str(seconds), {"Content-Type": "application/json"})
            return {"status": connection.getresponse().status}

    with victim("tests.attack.functions:hold") as target:
        account = probed(compute, target, 0.5)
        assert account.figures == {"status": 200}
        assert account.held_s >= 0.4
