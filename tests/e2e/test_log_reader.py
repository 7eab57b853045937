"""Whoever reads the log, or does not: calls are answered, signals are heard, and the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import SLOW
from tests.e2e.process import LOCAL
from tests.serving import READY

pytestmark = pytest.mark.timeout(20)

MODULE = """
import sys
from invoker import function

@function
def fails(x: int) -> int:
    raise ValueError("no " * 500)

@function
async def prints(x: int) -> int:
    print("yes " * 500)
    return x

@function
async def prints_errors(x: int) -> int:
    print("yes " * 500, file=sys.stderr)
    return x
"""


def call(address: str, name: str) -> int:
    request = urllib.request.Request(f"http://{address}/{name}", b"5")
    try:
        with urllib.request.urlopen(request, timeout=5 * SLOW) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_reader_that_stands_still_stops_nothing(tmp_path: Path, style, number, forked_python):
    """Neither calls nor the end, of which one signal is enough; what the pipe holds is whole."""
    (tmp_path / "author.py").write_text(MODULE)
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [str(forked_python), "-m", "invoker", "author", "--log-format", style],
        cwd=tmp_path,
        env={**os.environ, **LOCAL, "INVOKER_LAME_DUCK_S": "0"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    log = os.fdopen(ours, encoding="utf-8")
    try:
        lines = iter(log.readline, "")
        found = next(found for line in lines if (found := READY.search(line)))
        for name, status in (("fails", 500), ("prints", 200), ("prints_errors", 200)):
            assert {call(found[2], name) for _ in range(50)} == {status}
        process.send_signal(number)
        assert process.wait(5 * SLOW) == 0
        assert log.read()
    finally:
        process.kill()
        process.wait()
        log.close()
