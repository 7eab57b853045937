"""A process that is told to end does so, whatever its functions do; then, and when it is full, it is not ready."""

from __future__ import annotations

import ctypes
import os
import pty
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from invoker._pb.dspex import bridge_pb2
from invoker.client import CallFailed, SyncRiffClient
from invoker.errors import Status
from tests.conftest import SLOW
from tests.e2e.process import LOCAL, Process, started
from tests.e2e.stopping import invoke
from tests.serving import READY

pytestmark = pytest.mark.timeout(20)

SOON = {"INVOKER_DRAIN_S": "0", "INVOKER_GRACE_S": "0.1", "INVOKER_HOOK_TIMEOUT_S": "1"}
MODULE = """
import asyncio, concurrent.futures, sys, threading, time
from collections.abc import AsyncIterator, Iterator
from invoker import function

def say(text):
    sys.stderr.write(f"{text}\\n")  # at once, so that no other thread writes between

def stops(fn):
    return function(destroy=lambda: say(f"{fn.__name__} destroyed"))(fn)

@stops
async def deaf(values: AsyncIterator[int]) -> AsyncIterator[int]:
    yield 0
    while True:
        try:
            await asyncio.sleep(3600)
        except BaseException:
            say("swallowed")

@stops
def deaf_thread(values: Iterator[int]) -> Iterator[int]:
    yield 0
    threading.Event().wait()

@stops
async def blocked(values: AsyncIterator[int]) -> AsyncIterator[int]:
    say("held")
    time.sleep(3600)
    yield 0

@stops
async def careless(values: AsyncIterator[int]) -> AsyncIterator[int]:
    async def go_on():
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass
    careless.kept = asyncio.create_task(go_on())
    yield 0

@stops
async def quitting(values: AsyncIterator[int]) -> AsyncIterator[int]:
    async def leave():
        sys.exit(7)
    quitting.kept = asyncio.create_task(leave())
    asyncio.get_running_loop().call_soon(sys.exit, 8)
    await asyncio.sleep(0)
    yield 0

@stops
def threaded(values: Iterator[int]) -> Iterator[int]:
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    yield 0

@stops
def echo(values: Iterator[int]) -> Iterator[int]:
    yield from values
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A directory with the module `stopping`."""
    (tmp_path / "stopping.py").write_text(MODULE)
    return tmp_path


def bridge_health(process: Process) -> int:
    """What the tool bridge says of itself."""
    with grpc.insecure_channel(process.ready()[0]) as channel:
        check = channel.unary_unary(
            "/dspex.bridge.SnakepitBridge/HealthCheck",
            bridge_pb2.HealthCheckRequest.SerializeToString,
            bridge_pb2.HealthCheckResponse.FromString,
        )
        return int(check(bridge_pb2.HealthCheckRequest(), timeout=5 * SLOW).status)


def readiness(process: Process) -> tuple[int, int]:
    """What /readyz and grpc.health.v1 answer."""
    grpc_address, http_address = process.ready()
    try:
        with urllib.request.urlopen(f"http://{http_address}/readyz", timeout=20) as answer:
            status = answer.status
    except urllib.error.HTTPError as error:
        status = error.code
    with closing(grpc.insecure_channel(grpc_address)) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20).status
    return status, health


def thread_beside(pid: int) -> int:
    """A thread of the process that takes signals, and is not the main one."""
    for one in Path(f"/proc/{pid}/task").iterdir():
        blocked = int((one / "status").read_text().partition("SigBlk:")[2].split()[0], 16)
        if int(one.name) != pid and not blocked:
            return int(one.name)
    raise AssertionError("all other threads block signals")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", ["deaf", "deaf_thread"])
def test_R028_a_body_that_never_leaves_does_not_keep_the_process(module: Path, name: str, workers: str) -> None:
    """It is named, every destroy hook runs, and the exit code is 1; so with several workers (R-028, R-027)."""
    with (
        started("stopping", "--workers", workers, cwd=module, env=SOON) as process,
        SyncRiffClient(process.ready()[0]) as client,
    ):
        running = invoke(client, name)
        assert next(running) == 0
        process.send(signal.SIGTERM)
        with pytest.raises(CallFailed) as cut:
            list(running)
        assert cut.value.status is Status.UNAVAILABLE
        assert process.exit_code() == 1
        line = process.wait_for("user code has not returned")
        assert f"'{name}' (invocation i" in line
        assert process.log.count(f"{name} destroyed") == process.log.count("echo destroyed") == int(workers)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_R028_a_function_that_blocks_the_loop_does_not_keep_the_process(module: Path, workers: str) -> None:
    """Its line is shown, the destroy hooks run, and the exit code is 1 (R-028, R-027)."""
    with (
        started("stopping:blocked", "--workers", workers, cwd=module, env=SOON) as process,
        SyncRiffClient(process.ready()[0]) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(list, invoke(client, "blocked"))
        process.wait_for("held\n")
        process.send(signal.SIGTERM)
        assert process.exit_code() == 1
        assert "something blocks the event loop" in process.log
        assert "in blocked" in process.log
        assert process.log.count("blocked destroyed") == int(workers)
        with pytest.raises(CallFailed):
            running.result()


def test_R026_a_second_signal_is_heard_while_the_loop_is_blocked(module: Path) -> None:
    """It ends the process at once, with 128 plus its number (R-026)."""
    with (
        started("stopping", cwd=module) as process,
        SyncRiffClient(process.ready()[0]) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(list, invoke(client, "blocked"))
        process.wait_for("held\n")
        process.send(signal.SIGINT)
        process.wait_for("press Ctrl-C once more to leave at once")
        process.send(signal.SIGINT)
        assert process.exit_code() == 128 + signal.SIGINT
        with pytest.raises(CallFailed):
            running.result()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_R026_signals_that_another_thread_takes_are_heard_while_the_loop_is_blocked(module: Path, loop: str) -> None:
    """So the function's wait is not interrupted, as when a signal comes right before it begins."""
    with (
        started("stopping", "--loop", loop, cwd=module) as process,
        SyncRiffClient(process.ready()[0]) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(list, invoke(client, "blocked"))
        process.wait_for("held\n")
        other = thread_beside(process.pid)
        for _ in range(2):
            assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGINT) == 0
            process.wait_for("press Ctrl-C once more to leave at once")
        assert process.exit_code() == 128 + signal.SIGINT
        with pytest.raises(CallFailed):
            running.result()


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("name", "what"), [("careless", "tasks and executors"), ("threaded", "threads and exit")])
def test_what_a_function_has_started_does_not_keep_the_process(
    module: Path, name: str, what: str, workers: str
) -> None:
    """A task that swallows its cancel, and a thread that never ends: after the hooks they get a limit, then it ends."""
    with (
        started("stopping", "--workers", workers, cwd=module, env=SOON) as process,
        SyncRiffClient(process.ready()[0]) as client,
    ):
        assert list(invoke(client, name)) == [0]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 1
        assert f"the end of the {what}" in process.log
        assert f"{name} destroyed" in process.log


def test_R123_a_background_task_that_exits_ends_nothing_else(module: Path) -> None:
    """Nor does a callback; the log has the line, the invocation goes on, and the exit code is that of the stop."""
    with started("stopping", cwd=module) as process, SyncRiffClient(process.ready()[0]) as client:
        for _ in range(3):
            assert list(invoke(client, "quitting")) == [0]
        assert list(invoke(client, "echo", [7])) == [7]
        process.wait_for("raised SystemExit, which ends that task only", 6)
        assert "in leave" in process.log
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert "quitting destroyed" in process.log


def test_a_signal_ends_a_start_that_hangs(tmp_path: Path) -> None:
    """The start hook is given up, the destroy hook runs, and nothing was cut: exit code 0."""
    (tmp_path / "slow.py").write_text(
        "import asyncio, sys\n"
        "from invoker import function\n"
        "async def init():\n    print('starts', file=sys.stderr)\n    await asyncio.sleep(3600)\n"
        "@function(init=init, destroy=lambda: print('destroyed', file=sys.stderr))\n"
        "def same(x: int) -> int:\n    return x\n"
    )
    with started("slow:same", cwd=tmp_path, env={"INVOKER_HOOK_TIMEOUT_S": "3600"}) as process:
        process.wait_for("starts")
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert process.log.count("destroyed") == 1
        assert "ready: " not in process.log


@pytest.mark.parametrize("workers", ["1", "2"])
def test_R024_T153_a_lame_duck_says_not_ready_and_takes_calls(module: Path, workers: str) -> None:
    """After SIGTERM /readyz and each health say no, a new call is served; when the time is over the process ends."""
    with (
        started("stopping", "--workers", workers, cwd=module, env={"INVOKER_LAME_DUCK_S": "4"}) as process,
        SyncRiffClient(process.ready()[0]) as client,
    ):
        assert readiness(process) == (200, health_pb2.HealthCheckResponse.SERVING)
        assert bridge_health(process) == bridge_pb2.HealthCheckResponse.SERVING
        process.send(signal.SIGTERM)
        process.wait_for("not ready any more: calls are taken for another 4 s", int(workers))
        assert readiness(process) == (503, health_pb2.HealthCheckResponse.NOT_SERVING)
        assert bridge_health(process) == bridge_pb2.HealthCheckResponse.NOT_SERVING
        assert list(invoke(client, "echo", [7])) == [7]
        assert process.exit_code() == 0
        assert process.log.count("echo destroyed") == int(workers)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]])
def test_R024_SIGINT_and_a_second_signal_skip_the_lame_duck(
    module: Path, workers: str, numbers: list[signal.Signals]
) -> None:
    """The drain begins at once; it ends in peace."""
    with started("stopping", "--workers", workers, cwd=module, env={"INVOKER_LAME_DUCK_S": "3600"}) as process:
        process.ready()
        for number in numbers[:-1]:
            process.send(number)
            process.wait_for("not ready any more")
        process.send(numbers[-1])
        assert process.exit_code() == 0
        assert ("not ready any more" in process.log) == (len(numbers) > 1)


def test_R024_ctrl_c_under_reload_drains(module: Path) -> None:
    """The terminal interrupts both processes; the running call ends as if nothing were, then the exit code is 0."""
    with started("stopping", "--reload", cwd=module) as process, SyncRiffClient(process.ready()[0]) as client:
        values = iter([1, 2])
        running = invoke(client, "echo", values)
        assert next(running) == 1
        process.interrupt()
        process.wait_for("stopping: ")
        assert list(running) == [2]
        assert process.exit_code() == 0
        assert "not ready any more" not in process.log
        assert "echo destroyed" in process.log
        assert "press Ctrl-C once more" in process.log


def test_R026_a_second_ctrl_c_under_reload_leaves_at_once(module: Path) -> None:
    """No process is left that would serve on."""
    with started("stopping", "--reload", cwd=module) as process, SyncRiffClient(process.ready()[0]) as client:
        running = invoke(client, "deaf_thread")
        assert next(running) == 0
        process.interrupt()
        process.wait_for("stopping: ")
        process.interrupt()
        assert process.exit_code() == 128 + signal.SIGINT
        with pytest.raises(CallFailed):
            list(running)


def test_R132_a_process_that_refuses_because_it_is_full_is_not_ready(module: Path) -> None:
    """Once calls have been refused for long enough; when a slot is free again it is ready again."""
    opened = threading.Event()

    def values() -> Iterator[int]:
        yield 1
        opened.wait(5 * SLOW)

    env = {"INVOKER_THREADS": "1", "INVOKER_FULL_S": "0.001"}
    with started("stopping", cwd=module, env=env) as process, SyncRiffClient(process.ready()[0]) as client:
        try:
            running = invoke(client, "echo", values())
            assert next(running) == 1
            assert readiness(process) == (200, health_pb2.HealthCheckResponse.SERVING)
            with pytest.raises(CallFailed) as refused:
                list(invoke(client, "echo", [2]))
            assert refused.value.status is Status.RESOURCE_EXHAUSTED
            assert readiness(process) == (503, health_pb2.HealthCheckResponse.NOT_SERVING)
        finally:
            opened.set()
        assert list(running) == []
        assert list(invoke(client, "echo", [3])) == [3]
        assert readiness(process) == (200, health_pb2.HealthCheckResponse.SERVING)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hangup_is_refused_by_who_cannot_reload(module: Path, workers: str) -> None:
    """By one process and by a worker, with a line; calls go on, and SIGTERM ends it as ever."""
    with (
        started("stopping", "--workers", workers, cwd=module, env={**SOON, "TEST_REAL_CHILDREN": "1"}) as process,
        SyncRiffClient(process.ready()[0]) as client,
    ):
        running = invoke(client, "echo", [1, 2])
        assert next(running) == 1
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in map(int, children) if workers == "2" else [process.pid]:
            os.kill(pid, signal.SIGHUP)
        process.wait_for("SIGHUP: one process cannot reload", count=int(workers))
        assert list(running) == [2]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0


def test_a_terminal_that_is_closed_ends_what_runs_in_it(module: Path) -> None:
    """As SIGTERM does: what runs ends well."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            ["setsid", "--ctty", sys.executable, "-m", "invoker", "stopping", "--log-format", "json"],
            cwd=module,
            env={**os.environ, **LOCAL, **SOON, "INVOKER_DRAIN_S": "5", "INVOKER_LAME_DUCK_S": "0"},
            stdin=theirs,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
    finally:
        os.close(theirs)
    with process, closing(process.stderr) as lines:  # type: ignore[type-var]
        found = next(found for line in lines if (found := READY.search(line)))  # type: ignore[union-attr]
        with SyncRiffClient(found[1]) as client:
            running = invoke(client, "echo", [1, 2])
            assert next(running) == 1
            os.close(ours)
            assert list(running) == [2]
        assert process.wait(5 * SLOW) == 0
