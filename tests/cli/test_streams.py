"""Standard streams that are full or closed: a sentence or silence, and an exit code that means something."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.serving import ROOT

pytestmark = pytest.mark.timeout(30)

COMMANDS = [
    (["inspect", "functions.square:square"], 1, 0),
    (["proto", "functions.square:square"], 1, 0),
    (["completion", "bash"], 1, 0),
    (["nosuch:function"], 1, 1),
    (["call", "localhost:1", "-d", "5"], None, None),
    (["--nosuch"], None, None),
    (["--help"], None, 0),
]
STARTED = ["inspect", "functions.square:square"]


def run(python: str, args: list[str], redirected: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m invoker "$@" {redirected}', python, *args],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=25,
    )  # fmt: skip


@pytest.mark.parametrize(("args", "full", "closed"), COMMANDS)
@pytest.mark.parametrize("redirected", [">/dev/full", "2>/dev/full", ">/dev/full 2>&1", ">&-", "2>&-", ">&- 2>&-"])
def test_no_command_ends_with_120_or_a_traceback(args, full, closed, redirected, forked_python):
    """What was to be printed and could not is told where it can be.

    One command shows each redirection by a start, whose streams Python itself has made; the others are forks.
    """
    ended = run(sys.executable if args == STARTED else str(forked_python), args, redirected)
    assert ended.returncode in (0, 1, 2, 3, 14)
    assert "Traceback" not in ended.stdout + ended.stderr
    if redirected == ">/dev/full" and full is not None:
        assert ended.returncode == full
        assert ended.stderr.count("\n") == 1
        assert ("the output cannot be written: No space left on device" in ended.stderr) is (closed == 0)
    if redirected == ">&-" and closed is not None:
        assert ended.returncode == closed
    if redirected == "2>&-":
        assert ended.stderr == ""
        assert "invoker:" not in ended.stdout


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-", "<&- >&- 2>&-"])
def test_a_server_serves_without_a_log(redirected):
    """And ends as ever; no socket takes the place of what was closed."""
    code = (
        "import os, signal, sys, threading\n"
        "from invoker.cli.main import main\n"
        "from invoker.server import life\n"
        "def ready(block):\n"
        "    assert all('socket' not in os.readlink(f'/proc/self/fd/{one}') for one in range(3))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "life.announce = ready\n"
        "sys.argv[1:] = ['functions.square:square', '--lame-duck-s', '0']\n"
        "sys.exit(main())\n"
    )
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirected}', sys.executable, code],
        cwd=ROOT, env={**os.environ, "INVOKER_HOST": "127.0.0.1", "GRPC_PORT": "0", "PORT": "0"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=25,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("mib", [100, 200, 400, 800])
def test_a_low_limit_of_addresses_is_told(mib):
    """At once, by one process and by workers."""
    for workers in ("1", "2"):
        ended = subprocess.run(
            ["sh", "-c", f'ulimit -v {mib * 1024}; exec "$0" -m invoker functions.square:square --workers {workers}',
             sys.executable],
            cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=25,
        )  # fmt: skip
        assert ended.returncode == 1
        assert f"invoker: the address space of this process is limited to {mib} MiB (ulimit -v)" in ended.stderr
        assert "Traceback" not in ended.stderr
