"""Programs that serve: whole processes, as `serve` is used in scripts and interactive sessions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import SLOW
from tests.serving import ROOT

SCRIPT = """
import atexit, sys, threading, time
import invoker

class Model:
    def __enter__(self): print("entered", flush=True)
    def __call__(self, x: int) -> int:
        print("called", flush=True)
        time.sleep(x / 10)
        return x
    def __exit__(self, *exc): print("left", flush=True)

def main():
    served = invoker.serve(Model, protocols="http", port=int(sys.argv[1]), log_format="text"{more})
    print("returned", served, flush=True)
{after}

if __name__ == "__main__":
    main()
    print("threads:", *[one.name for one in threading.enumerate()], flush=True)
"""


CALLER = """
import sys, urllib.request as web
request = web.Request(sys.argv[1], b"3", {"Content-Type": "application/json"})
print(web.urlopen(request).read().decode())
"""


@contextmanager
def program(
    folder: Path, *, more: str = "", after: str = "", flags: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen]:
    path = folder / "program.py"
    path.write_text(SCRIPT.format(more=more, after=after))
    process = subprocess.Popen(
        [sys.executable, *flags, str(path), "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "INVOKER_HOST": "127.0.0.1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def url_of(line: str) -> str:
    found = re.search(r"http(?:=|://)([\w.]+:\d+)", line)
    assert found, line
    return f"http://{found[1]}"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_H091_a_script_serves_until_it_is_told_to_stop(tmp_path, number):
    """It says where; a running call gets its answer; the stop hooks run; and the script goes on."""
    with program(tmp_path) as process:
        ready = next(line for line in process.stderr if "ready:" in line)
        assert " ready: Model on http=" in ready
        assert process.stdout.readline() == "entered\n"
        with httpx.Client(trust_env=False, timeout=10 * SLOW) as client:
            with client.stream("POST", url_of(ready), json=5) as answer:
                pass
            assert answer.status_code == 200
            assert process.stdout.readline() == "called\n"
            command = [sys.executable, "-c", CALLER, url_of(ready)]
            asking = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "called\n"
            process.send_signal(number)
            assert asking.communicate(timeout=10 * SLOW)[0] == "3\n"
        out, err = process.communicate(timeout=10 * SLOW)
        assert out.splitlines() == ["left", "returned <Serving Model, stopped>", "threads: MainThread"]
        assert "stopped" in err
        assert process.returncode == 0


@pytest.mark.timeout(20)
def test_H091_H094_what_serves_in_the_background_ends_with_the_program(tmp_path):
    """Its stop hooks run."""
    with program(tmp_path, more=", block=False") as process:
        out, err = process.communicate(timeout=10 * SLOW)
        assert out.splitlines()[0] == "entered"
        assert out.splitlines()[-1] == "left"
        assert (err, process.returncode) == ("", 0)


@pytest.mark.timeout(20)
def test_H091_an_interactive_session_goes_on(tmp_path):
    """As `python -i` does."""
    with program(tmp_path, flags=("-i",)) as process:
        assert process.stdout.readline() == "entered\n"
        line = process.stdout.readline()
        assert line.startswith("returned <Serving Model on http://localhost:")
        assert httpx.post(url_of(line), json=1, trust_env=False).text == "1"
        out, _ = process.communicate(timeout=10 * SLOW)
        assert out.splitlines()[-1] == "left"
        assert process.returncode == 0
