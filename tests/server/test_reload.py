"""Serving anew when the author's files change."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from invoker.server.reload import watched_folder
from tests.conftest import SLOW


def test_the_folder_of_a_named_file_is_watched(tmp_path):
    """Else the current one."""
    assert watched_folder(f"{tmp_path}/fn.py:fn") == tmp_path
    assert watched_folder("pkg.mod:fn") == Path.cwd()


def wait_for(log, pattern, count=1):
    """Wait until the log has a line so many times."""
    until = time.monotonic() + 10 * SLOW
    while time.monotonic() < until:
        found = re.findall(pattern, log.read_text())
        if len(found) >= count:
            return found[-1]
        time.sleep(0.05)
    pytest.fail(f"{pattern} did not come {count} times:\n{log.read_text()}")


def called(python, address, value):
    command = [python, "-m", "invoker", "call", address, "--data", value]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.timeout(60)
def test_a_change_is_served_and_a_broken_one_is_survived(tmp_path, forked_python):
    """A syntax error is shown while the old code goes on serving; the next good change takes its place."""
    code, log = tmp_path / "fn.py", tmp_path / "log"
    code.write_text("def fn(x: int) -> int:\n    return x + 1\n")
    environment = {**os.environ, "INVOKER_HOST": "127.0.0.1", "GRPC_PORT": "0", "INVOKER_HTTP": "0"}
    command = [sys.executable, "-m", "invoker", "./fn.py:fn", "--reload", "--log-format", "text"]
    with log.open("w") as sink:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=sink, stderr=sink)
    try:
        first = wait_for(log, r"grpc=(\S+)")
        wait_for(log, "watching")
        assert called(forked_python, first, "1") == "2"
        code.write_text("def fn(x: int) -> int\n    return x\n")
        wait_for(log, "not reloaded: .*fn.py")
        assert called(forked_python, first, "1") == "2"
        code.write_text("def fn(x: int) -> int:\n    return x + 10\n")
        second = wait_for(log, r"grpc=(\S+)", count=2)
        assert called(forked_python, second, "1") == "11"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
