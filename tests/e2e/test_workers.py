"""Several workers behind one pair of ports: real processes, real signals, real deaths."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from invoker.client import CallFailed, SyncRiffClient
from invoker.errors import Status
from tests.conftest import SLOW
from tests.e2e.process import Process, started
from tests.e2e.test_lifecycle import free_port, is_taken

pytestmark = pytest.mark.timeout(20)

JSON = "application/json"
MODULE = """
import os, sys, time
from collections.abc import Iterator
from invoker import function

@function(destroy=lambda: print("destroyed", file=sys.stderr, flush=True))
def copy(values: Iterator[int]) -> Iterator[int]:
    yield os.getpid()
    yield from values

@function
async def stuck(seconds: float) -> int:
    time.sleep(seconds)
    return 0

@function
def version(x: int) -> int:
    return 1
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A directory with the module `working`."""
    (tmp_path / "working.py").write_text(MODULE)
    return tmp_path


@contextmanager
def serving(module: Path, **env: str) -> Iterator[Process]:
    """Two workers, ready."""
    with started("working", "--workers", "2", cwd=module, env=env) as process:
        process.ready()
        yield process


class Stream:
    """A running call of `copy` on a connection of its own."""

    def __init__(self, stack: ExitStack, address: str) -> None:
        self._closed = threading.Event()
        stack.callback(self._closed.set)
        client = stack.enter_context(SyncRiffClient(address))
        self._outs = iter(client.invoke([self._inputs()], accept=JSON, content_type=JSON, function="copy"))
        self.pid: int = next(self._outs).value

    def _inputs(self) -> Iterator[int]:
        self._closed.wait(10 * SLOW)
        yield 7

    def finish(self) -> list[int]:
        """Let it end; what else it gave."""
        self._closed.set()
        return [out.value for out in self._outs]


def streams(stack: ExitStack, address: str) -> list[Stream]:
    """Calls that run, at least one in each of two workers."""
    made: list[Stream] = []
    while len({one.pid for one in made}) < 2:
        assert len(made) < 50, "all connections went to one worker"
        made.append(Stream(stack, address))
    return made


def call(address: str, function: str, value: float) -> Any:
    """What a function gives, on a connection of its own."""
    with SyncRiffClient(address) as client:
        (out,) = client.invoke([[value]], accept=JSON, content_type=JSON, function=function)
        return out.value


def metrics(http: str) -> dict[str, float]:
    """Every figure by its name; another connection each time."""
    with urllib.request.urlopen(f"http://{http}/metrics") as response:
        lines = response.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask again and again, for what no log line tells."""
    paused = threading.Event()
    for _ in range(int(100 * SLOW)):
        if condition():
            return
        paused.wait(0.05)
    pytest.fail("it never became so")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet buried does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    return False


def test_two_workers_share_ports_that_nobody_chose(module: Path) -> None:
    """Ports 0: both workers answer on the ports that the one ready line names; lines carry the worker's number."""
    with serving(module) as process, ExitStack() as stack:
        grpc, http = process.ready()
        line = process.wait_for("ready: ")
        assert "2 workers" in line
        assert "0" not in {grpc.rpartition(":")[2], http.rpartition(":")[2]}
        running = streams(stack, grpc)
        assert {one.finish()[-1] for one in running} == {7}
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
        assert set(re.findall(r'"invocation ended".*"worker": ?(\d+)', process.log)) == {"1", "2"}
        assert process.log.count("ready: ") == 1


def test_H207_the_live_numbers_say_whose_they_are(module: Path) -> None:
    """Of the worker that was reached, among two."""
    with serving(module, INVOKER_PAGE="on") as process:
        with urllib.request.urlopen(f"http://{process.ready()[1]}/invocations") as response:
            told = json.load(response)
        assert (told["worker"] in (1, 2), told["workers"]) == (True, 2)


def test_chosen_ports_are_those(module: Path) -> None:
    """And a second server on them is refused, though the workers share them (R-006)."""
    ports = {"GRPC_PORT": str(free_port()), "PORT": str(free_port())}
    with serving(module, **ports) as process:
        assert process.ready() == (f"127.0.0.1:{ports['GRPC_PORT']}", f"127.0.0.1:{ports['PORT']}")
        with started("working", "--workers", "2", cwd=module, env=ports) as second:
            assert second.exit_code() == 1
            assert f"cannot listen on 127.0.0.1:{ports['GRPC_PORT']} for gRPC" in second.log


def test_the_death_of_a_worker_harms_only_its_calls(module: Path) -> None:
    """kill -9: the calls in it fail with UNAVAILABLE, the others end as if nothing were, and another worker comes."""
    with serving(module) as process, ExitStack() as stack:
        grpc, http = process.ready()
        running = streams(stack, grpc)
        victim = running[0].pid
        os.kill(victim, signal.SIGKILL)
        process.wait_for("SIGKILL")
        for one in running:
            if one.pid == victim:
                with pytest.raises(CallFailed) as failed:
                    one.finish()
                assert failed.value.status is Status.UNAVAILABLE
            else:
                assert one.finish() == [7]
        process.wait_for("worker 3 is ready")
        assert len({one.pid for one in streams(stack, grpc)}) == 2
        figures = metrics(http)
        assert (figures["invoker_workers"], figures["invoker_worker_restarts_total"]) == (2, 1)


def test_metrics_are_summed_and_never_go_backwards(module: Path) -> None:
    """Whichever worker answers; what a worker has counted outlives it."""
    with serving(module) as process, ExitStack() as stack:
        grpc, http = process.ready()
        running = streams(stack, grpc)
        wait_until(lambda: metrics(http)["invoker_running_invocations"] == len(running))
        assert {one.finish()[-1] for one in running} == {7}
        ended = 'invoker_invocations_total{status="OK"}'
        wait_until(lambda: metrics(http).get(ended) == len(running))
        os.kill(running[0].pid, signal.SIGKILL)
        process.wait_for("SIGKILL")
        assert metrics(http)[ended] == len(running)
        process.wait_for("worker 3 is ready")
        assert metrics(http)[ended] == len(running)
        assert call(grpc, "version", 0) == 1
        wait_until(lambda: metrics(http)[ended] == len(running) + 1)


def test_a_worker_whose_loop_is_stuck_is_replaced(module: Path) -> None:
    """Its heartbeat is missed: its stack is shown, it is killed, and another one takes its place."""
    with serving(module, INVOKER_HEARTBEAT_S="0.8") as process:
        grpc, _ = process.ready()
        with pytest.raises(CallFailed) as failed:
            call(grpc, "stuck", 60.0)
        assert failed.value.status is Status.UNAVAILABLE
        process.wait_for("has been silent for 0.8 s")
        process.wait_for("in stuck")
        process.wait_for("its loop was stuck")
        process.wait_for("worker 3 is ready")
        assert call(grpc, "version", 0) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_all_workers(module: Path, number: signal.Signals) -> None:
    """Calls in both end as if nothing were, both run their destroy hooks, and the exit code is 0 (R-024, R-018)."""
    with serving(module) as process, ExitStack() as stack:
        grpc, _ = process.ready()
        running = streams(stack, grpc)
        process.send(number)
        for worker in (1, 2):
            wait_until(lambda: f' running", "worker": {worker}' in process.log)  # noqa: B023
        assert {tuple(one.finish()) for one in running} == {(7,)}
        assert process.exit_code() == 0
        assert process.lines.count("destroyed\n") == 2


def test_a_drain_that_has_to_cut_is_exit_code_1(module: Path) -> None:
    """As with one process (R-027)."""
    with serving(module, INVOKER_DRAIN_S="0.1") as process, ExitStack() as stack:
        running = streams(stack, process.ready()[0])
        process.send(signal.SIGTERM)
        for worker in (1, 2):
            wait_until(lambda: f' cut", "worker": {worker}' in process.log)  # noqa: B023
        for one in running:
            with pytest.raises(CallFailed):
                one.finish()
        assert process.exit_code() == 1


def test_a_second_signal_ends_all_at_once(module: Path) -> None:
    """128 plus the signal, and no worker is left (R-026)."""
    with serving(module) as process, ExitStack() as stack:
        running = streams(stack, process.ready()[0])
        process.send(signal.SIGTERM)
        process.wait_for("stopping: ")
        process.send(signal.SIGTERM)
        assert process.exit_code() == 128 + signal.SIGTERM
        wait_until(lambda: not any(is_alive(one.pid) for one in running))
        for one in running:
            with pytest.raises(CallFailed):
                one.finish()


def test_workers_leave_when_their_supervisor_is_killed(module: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """They drain: calls end as if nothing were, then nobody listens; what they shared goes with the last."""
    place = tmp_path_factory.mktemp("shared")
    with serving(module, TMPDIR=str(place)) as process, ExitStack() as stack:
        grpc, http = process.ready()
        assert list(place.glob("invoker-*/store.db"))
        running = streams(stack, grpc)
        process.send(signal.SIGKILL)
        process.wait_for("the supervisor is gone")
        assert {tuple(one.finish()) for one in running} == {(7,)}
        wait_until(lambda: not any(is_alive(one.pid) for one in running))
        assert not is_taken(int(grpc.rpartition(":")[2]))
        assert not is_taken(int(http.rpartition(":")[2]))
        assert not list(place.iterdir())


def test_a_crash_loop_gives_up(tmp_path: Path) -> None:
    """No worker has ever been ready: exit code 1, and one sentence says what they died of."""
    (tmp_path / "working.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with started("working", "--workers", "2", cwd=tmp_path) as process:
        assert process.exit_code() == 1
        said = "invoker: no worker became ready; 5 have ended, the last one with: SIGKILL"
        assert json.loads(process.lines[-1])["message"] == said


def test_R008_what_cannot_be_loaded_is_told_once(module: Path) -> None:
    """The line that one process would print, and its exit code (R-008)."""
    with started("working:copi", "--workers", "2", cwd=module) as process:
        assert process.exit_code() == 1
        assert [line for line in process.lines if "did you mean 'copy'" in line] == process.lines[-1:]
        assert json.loads(process.lines[-1])["message"].startswith("invoker: ")


def keep_calling(address: str, stopped: threading.Event) -> int:
    """Call one after the other over the same channel; how many there were."""
    count = 0
    with SyncRiffClient(address) as client:
        while not stopped.is_set():
            outs = client.invoke([[0]], accept=JSON, content_type=JSON, function="version")
            assert [out.value for out in outs] == [1]
            count += 1
    return count


def keep_connecting(address: str, stopped: threading.Event) -> int:
    """Call one after the other, each time over another connection."""
    count = 0
    while not stopped.is_set():
        assert call(address, "version", 0) == 1
        count += 1
    return count


def test_a_reload_under_load_fails_no_call(module: Path) -> None:
    """Clients that stay connected are told to leave the old workers, and those that come anew meet the new ones."""
    with serving(module, INVOKER_CONNECTION_AGE_S="1") as process, ThreadPoolExecutor(6) as pool:
        grpc, _ = process.ready()
        stopped = threading.Event()
        try:
            busy = [pool.submit(keep_calling, grpc, stopped) for _ in range(4)]
            busy += [pool.submit(keep_connecting, grpc, stopped) for _ in range(2)]
            process.send(signal.SIGHUP)
            wait_until(lambda: process.log.count("has retired") == 2)
        finally:
            stopped.set()
        assert all(one.result() > 0 for one in busy)
        assert "cut" not in process.log


def test_a_reload_serves_the_newest_code(module: Path) -> None:
    """SIGHUP: new calls meet the new code, running ones end with the old, and code that is broken changes nothing."""
    with serving(module) as process, ExitStack() as stack:
        grpc, http = process.ready()
        running = streams(stack, grpc)
        (module / "working.py").write_text("def broken(:\n")
        process.send(signal.SIGHUP)
        process.wait_for("not reloaded")
        assert call(grpc, "version", 0) == 1
        # Of another size: bytecode of the same second and size would still count as that of this source.
        (module / "working.py").write_text(MODULE.replace("return 1", "return  2"))
        process.send(signal.SIGHUP)
        process.wait_for("reloaded: 2 workers run the newest code")
        wait_until(lambda: call(grpc, "version", 0) == 2)
        assert {tuple(one.finish()) for one in running} == {(7,)}
        assert metrics(http)["invoker_worker_reloads_total"] == 2
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
