"""A server that is forked behaves like one that is started, and whatever a fork cannot show is started."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.attack.floods import GOAWAY, PING, PREFACE, frame
from tests.forkserver import ROOT, Forked, _beyond, _Server, is_forkable
from tests.serving import READY, start

pytestmark = pytest.mark.timeout(60)

HERE = {"INVOKER_HOST": "127.0.0.1", "PORT": "0", "GRPC_PORT": "0"}
MODULE = (
    "import os, sys\nprint(os.getcwd(), os.environ.get('INVOKER_X'), sys.path[0], sep='\\n')\ndef fn(x): return x\n"
)

BEYOND_A_FORK = [
    {"PYTHONHASHSEED": "0"}, {"PYTHONPATH": "/elsewhere"}, {"LC_ALL": "C"}, {"GRPC_TRACE": "all"},
    {"GRPC_VERBOSITY": "INFO"}, {"MALLOC_ARENA_MAX": "1"}, {"LD_PRELOAD": "x"}, {"HOME": None},
]  # fmt: skip


@pytest.fixture
def served() -> Iterator[Forked]:
    process = Forked(["functions.square:square"], cwd=ROOT, env={**os.environ, **HERE})
    for line in process.stderr:
        if "ready: " in line:
            break
    yield process
    process.kill()
    process.wait(10)
    process.stderr.close()


@pytest.mark.parametrize("changed", BEYOND_A_FORK, ids=str)
def test_what_others_read_from_the_environment_takes_a_start(changed: dict[str, str | None]) -> None:
    environment = {**os.environ, **changed}
    assert not is_forkable({name: value for name, value in environment.items() if value is not None})
    assert is_forkable({**os.environ, **HERE, "INVOKER_LOG_FORMAT": "text", "TEST_X": "y", "PYTHONPATH": str(ROOT)})


def test_nothing_in_this_process_has_changed_what_keeps_tests_from_forks() -> None:
    """Otherwise all tests behind the one that did start hundreds of servers anew."""
    assert _beyond(os.environ) == set()


def test_what_a_start_leaves_out_takes_a_start() -> None:
    assert not is_forkable({})


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_it_ends_by_a_signal_and_says_how(served: Forked, number: int, code: int) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        served.wait(0)
    assert served.poll() is None
    served.send_signal(number)
    assert served.wait(20) == served.poll() == served.returncode == code
    served.send_signal(number)  # to nobody


def test_it_leads_a_session_and_has_no_descriptor_of_others(served: Forked) -> None:
    assert os.getsid(served.pid) == os.getpgid(served.pid) == served.pid
    open_files = [str(Path(f"/proc/{served.pid}/fd/{one}").readlink()) for one in range(3)]
    assert open_files[:2] == [os.devnull, os.devnull]
    assert open_files[2].startswith("pipe:")


def test_grpc_logs_no_lines_of_its_own(tmp_path: Path) -> None:
    """Not even that a client says farewell with an error, which gRPC tells at a verbosity of its own."""
    with (tmp_path / "log").open("w+") as log:
        process = Forked(["functions.square:square"], cwd=ROOT, env={**os.environ, **HERE}, stderr=log)
        try:
            while (ready := READY.search(Path(log.name).read_text())) is None:
                time.sleep(0.05)
            host, port = ready[1].rsplit(":", 1)
            with socket.create_connection((host, int(port)), 10) as client:
                client.sendall(PREFACE + frame(GOAWAY, 0, 0, struct.pack(">II", 0, 2)))
                client.sendall(frame(PING, 0, 0, b"are done"))
                heard = b""
                while b"are done" not in heard:
                    heard += client.recv(1 << 16)
        finally:
            process.terminate()
            process.wait(20)
        assert "oaway" not in Path(log.name).read_text()


def test_threads_that_start_at_once_share_the_server_that_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever came last ended what the others had started."""
    made: list[_Server] = []
    all_here = threading.Barrier(8)

    class Slow(_Server):
        def __init__(self) -> None:
            made.append(self)
            time.sleep(0.1)
            super().__init__()

    def start() -> int:
        all_here.wait(10)
        one = Forked(["--version"], cwd=ROOT, env=os.environ)
        with one.stderr:
            return one.wait(20)

    monkeypatch.setattr("tests.forkserver._Server", Slow)
    monkeypatch.setattr("tests.forkserver._server.__defaults__", ([], threading.Lock()))
    with ThreadPoolExecutor(8) as pool:
        assert [one.result(30) for one in [pool.submit(start) for _ in range(8)]] == [0] * 8
    for server in made:
        server._requests.close()
        server._process.wait(20)
    assert len(made) == 1


def test_it_is_where_and_what_it_was_told_to_be(tmp_path: Path) -> None:
    """Its folder, its environment, its search path; an error of the author is an exit code and a sentence."""
    (tmp_path / "author.py").write_text(MODULE)
    (tmp_path / "fails.py").write_text("1 / 0\n")
    environment = {**os.environ, **HERE, "INVOKER_X": "y"}
    out = (tmp_path / "out").open("w+")
    with out:
        process = Forked(["inspect", "author:fn"], cwd=tmp_path, env=environment, stdout=out)
        logged = process.stderr.read()
        assert process.wait(20) == 0, logged
        process.stderr.close()
        assert (tmp_path / "out").read_text().splitlines()[:3] == [str(tmp_path), "y", str(tmp_path)]
    process = Forked(["fails:fn"], cwd=tmp_path, env=environment)
    logged = process.stderr.read()
    process.stderr.close()
    assert (process.wait(20), "ZeroDivisionError" in logged, "forkserver" in logged) == (1, True, False)


def test_it_ends_with_the_tests_that_started_it() -> None:
    """However they end."""
    code = (
        "import os, sys\nfrom tests.forkserver import ROOT, Forked\n"
        f"one = Forked(['functions.square:square'], cwd=ROOT, env={{**os.environ, **{HERE!r}}})\n"
        "print(one.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=40
    )
    pid, until = int(done.stdout), time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_it_has_imported_what_a_server_imports(tmp_path: Path) -> None:
    """Otherwise each of hundreds imports it again, and nobody notices but the clock."""
    (tmp_path / "late.py").write_text(
        "import sys\nbefore = {*sys.modules}\n"
        "def seen() -> list[str]:\n"
        "    return [one for one in sys.modules if one.startswith(('invoker.', 'grpc')) and one not in before]\n"
    )
    process = start(["late:seen"], cwd=tmp_path, env={**os.environ, **HERE})
    try:
        assert process.stderr is not None
        found = next(filter(None, map(READY.search, process.stderr)))
        with urllib.request.urlopen(f"http://{found[2]}/seen", data=b"", timeout=20) as reply:
            assert json.load(reply) == []
    finally:
        process.kill()
        process.wait(10)
        process.stderr.close()


IS_FORK = "import sys\nprint('prometheus_client' in sys.modules)\n"


def said(python: Path, *args: str, **more: Any) -> tuple[int, str, str]:
    done = subprocess.run([python, *args], capture_output=True, text=True, check=False, timeout=40, **more)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("where", "hits"), [("tree", 1), ("elsewhere", 0)])
def test_whoever_starts_in_the_tree_finds_entry_points_read(
    forked_python: Path, tmp_path: Path, where: str, hits: int
) -> None:
    """Another folder may have distributions of its own, so what starts there looks for them."""
    code = (
        "from invoker.codecs import custom; custom.installed('x'); print('hits', custom._installed.cache_info().hits)\n"
    )
    ended, out, _ = said(forked_python, "-m", "code", "-q", cwd=ROOT if where == "tree" else tmp_path, input=code)
    assert ended == 0
    assert f"hits {hits}\n" in out


def test_a_command_line_of_python_is_a_fork(forked_python: Path, tmp_path: Path) -> None:
    """Of a text, a file and a module; with its arguments, its folder and its input."""
    show = f"{IS_FORK}print(sys.argv[1:], __name__, sys.path[0], input())\n"
    (tmp_path / "shown.py").write_text(show)
    for args, path in ((["-c", show], ""), ([str(tmp_path / "shown.py")], tmp_path), (["-m", "shown"], tmp_path)):
        code, out, err = said(forked_python, *args, "a b", "", cwd=tmp_path, input="given\n")
        assert (code, out, err) == (0, f"True\n['a b', ''] __main__ {path} given\n", "")
    assert said(forked_python.with_name("invoker"), "--version") == said(forked_python, "-m", "invoker", "--version")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("1 / 0", 1),
        ("raise SystemExit('x')", 1),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_it_ends_as_the_fork_does(forked_python: Path, text: str, code: int) -> None:
    assert said(forked_python, "-c", text)[0] == code


def test_signals_are_passed_on(forked_python: Path) -> None:
    text = "import signal\nprint('ready', flush=True)\nprint(signal.sigwait({15}))\n"
    text = f"import signal\nsignal.pthread_sigmask(0, {{15}})\n{text}"
    with subprocess.Popen([forked_python, "-c", text], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.read() == "15\n"
        assert process.wait(20) == 0


@pytest.mark.parametrize("redirected", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_closed_there(forked_python: Path, tmp_path: Path, redirected: str) -> None:
    """As Python has it: they are None, and their numbers are free."""
    text = (
        "import os, pathlib, sys\n"
        "found = [one is not None for one in (sys.stdin, sys.stdout, sys.stderr)]\n"
        "there = [pathlib.Path(f'/proc/self/fd/{one}').is_symlink() for one in range(3)]\n"
        "pathlib.Path('found').write_text(f'{found}{there}')\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirected}', forked_python, text], cwd=tmp_path, check=False, timeout=40
    )
    closed = [str(number) for number, sign in enumerate(("<&-", " >&-", "2>&-")) if sign in f" {redirected}"]
    wanted = [str(number) not in closed for number in range(3)]
    assert (done.returncode, (tmp_path / "found").read_text()) == (0, f"{wanted}{wanted}")


@pytest.mark.parametrize(
    ("args", "env"),
    [(["-X", "dev"], {}), (["-W", "error::UserWarning"], {}), ([], {"PYTHONHASHSEED": "0"}), ([], {"LC_ALL": "C"})],
    ids=str,
)
def test_what_a_fork_cannot_show_is_started(forked_python: Path, args: list[str], env: dict[str, str]) -> None:
    assert said(forked_python, *args, "-c", IS_FORK, env={**os.environ, **env}) == (0, "False\n", "")


def test_warnings_are_errors_where_that_is_asked_for(forked_python: Path) -> None:
    """Also what is found only when all that is left is taken apart."""
    text = "import warnings\nwarnings.warn('x')\n"
    assert (said(forked_python, "-c", text)[0], said(forked_python, "-W", "error", "-c", text)[0]) == (0, 1)
    left = "import socket\nleft = socket.socket()\n"
    assert said(forked_python, "-c", left) == (0, "", "")
    assert "ResourceWarning: unclosed" in said(forked_python, "-W", "error", "-c", left)[2]


def test_what_is_to_be_done_at_the_end_is_done(forked_python: Path, tmp_path: Path) -> None:
    """What is in no buffer yet, threads, hooks, finalizers of cycles, and the code for an output that is full."""
    text = (
        "import atexit, threading, time\n"
        "class Cycle:\n"
        "    def __init__(self): self.me = self\n"
        "    def __del__(self): print('cycle')\n"
        "Cycle()\n"
        "atexit.register(print, 'hook')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "print('end')\n"
    )
    assert said(forked_python, "-c", text) == (0, "end\nthread\nhook\ncycle\n", "")
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([forked_python, "-c", "print(5)"], stdout=full, check=False, timeout=40).returncode == 120


@pytest.mark.parametrize("is_real", [False, True])
def test_children_of_a_server_are_forks_unless_it_is_told_not_to(tmp_path: Path, is_real: bool) -> None:
    """A fork's parent forks for all; either ends with its server, though that is killed and the child is busy."""
    (tmp_path / "busy.py").write_text(
        "import os, time\nfrom invoker import function\n@function(isolation='process')\n"
        "def ids(n: int) -> list[int]:\n    if n:\n        while True: pass\n    return [os.getpid(), os.getppid()]\n"
    )
    env = {**os.environ, **HERE, **({"TEST_REAL_CHILDREN": "1"} if is_real else {})}
    process = Forked(["busy:ids"], cwd=tmp_path, env=env)
    match = next(found for line in process.stderr if (found := READY.search(line)))
    reply = urllib.request.urlopen(
        urllib.request.Request(f"http://{match[2]}/ids", b"0", {"Content-Type": "application/json"})
    )
    child, parent = json.loads(reply.read())
    assert (parent == process.pid) is is_real
    with socket.create_connection((match[2].split(":")[0], int(match[2].split(":")[1]))) as asked:
        asked.sendall(b"POST /ids HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1")
        time.sleep(0.1)
        process.kill()
        process.wait(10)
    while Path(f"/proc/{child}").exists():  # the limit of the test ends what does not end
        time.sleep(0.01)
    process.stderr.close()
