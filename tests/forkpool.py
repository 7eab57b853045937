"""``--processes N``: run the tests in N forks of the process that has collected them.

Collecting 24,000 tests takes five seconds of the processor. Workers of pytest-xdist do that once each, and tell their
controller of every step of every test; together that was a sixth of the suite's time, so that there could not be enough
of them to overlap the waits of others. Forks share what is collected, and cost nothing but what they run.

The process that has collected hands out pieces of files, in an order that mixes files that wait with files that work. A
fork asks for the next piece as it begins the last test that it has, since what fixtures end after a test depends on
the test that comes next. It reports each test when it is over; the test in which a fork ends by itself has failed, and
another fork does what that one has left. Of tests that pass, only the time is reported, not what they have printed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest._io import TerminalWriter
from hypothesis import given
from hypothesis import strategies as st

# How many processes there are for each core: tests wait for more than half of their time.
A_CORE = 4
_LEAST = 4
"""A piece of a file has no fewer tests, unless the file has none: each process starts the servers of a file anew."""

Reports = list[Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    about = f"run the tests in N forks of this process; auto: {A_CORE} for each core"
    parser.getgroup("processes").addoption("--processes", type=_count, default=0, metavar="N", help=about)


def _count(text: str) -> int:
    return A_CORE * (os.cpu_count() or 1) if text == "auto" else int(text)


def processes(config: pytest.Config) -> int:
    """How many forks run the tests; 0: this process does so itself."""
    option = config.option
    if not option.processes or option.collectonly or option.usepdb:
        return 0
    if getattr(option, "numprocesses", None):
        raise pytest.UsageError("--processes and -n are two ways to run tests side by side: give one of them")
    return int(option.processes)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, if there are to be some."""
    if session.testsfailed or not (count := processes(session.config)):
        return None
    _warm()
    Pool(session, count).run()
    return True


@given(st.none())
def _warm(_: None) -> None:
    """Let Hypothesis read the constants of all modules, which takes a second, before there are forks."""


@dataclass
class Worker:
    """A fork, as the process that hands out the tests sees it.

    Attributes:
        number: Of this fork.
        pid: Of its process.
        pipe: To it.
        given: The indices of tests that it has been given and has not reported yet, in their order.
    """

    number: int
    pid: int
    pipe: Connection
    given: deque[int] = field(default_factory=deque)


class Pool:
    """The forks that run the tests of a session.

    Args:
        session: Has collected the tests.
        count: How many forks there are.
    """

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._count = min(count, len(session.items)) or 1
        self._pieces = Pieces(session.items, self._count)
        self._workers: dict[Connection, Worker] = {}
        self._made = 0
        self._is_over = mmap(-1, 1)  # forks share it, and look at it before each test
        self._base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]

    def run(self) -> None:
        """Run all tests, or those until pytest wants to stop."""
        try:
            for _ in range(self._count):
                self._fork()
            while self._workers:
                for pipe in wait([*self._workers]):
                    self._hear(self._workers[pipe])
        finally:
            self._is_over[0] = 1
            for one in self._workers.values():
                one.pipe.close()
                os.waitpid(one.pid, 0)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _fork(self) -> None:
        number, self._made = self._made, self._made + 1
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if (pid := forked()) == 0:
            for one in (ours, *self._workers):
                one.close()
            self._become(number, theirs)
        theirs.close()
        self._workers[ours] = Worker(number, pid, ours)

    def _hear(self, worker: Worker) -> None:
        """Take what a fork says: that it wants more tests, or what became of one."""
        said = _received(worker.pipe)
        if said is _ENDED:
            self._end(worker)
            return
        if said is None:
            piece = () if self._is_over[0] else self._pieces.take()
            worker.given.extend(piece)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended, which is heard next
                worker.pipe.send([*piece])
            return
        index, reports = said
        assert worker.given.popleft() == index, "a fork runs its tests in the order in which they were given"
        self._report(index, reports)

    def _end(self, worker: Worker) -> None:
        """What a fork leaves when it ends: nothing, unless it did so in the midst of a test."""
        del self._workers[worker.pipe]
        worker.pipe.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if not worker.given and code and not self._is_over[0]:
            raise RuntimeError(
                f"process {worker.number} of the tests has ended with exit code {code} between two tests"
            )
        if worker.given and not self._is_over[0]:
            index = worker.given.popleft()
            why = f"signal {-code}" if code < 0 else f"exit code {code}"
            text = f"the process that ran this test has ended: {why}"
            self._report(index, [("failed", "call", 0.0, 0.0, text)])
            self._pieces.give_back(worker.given)
            self._fork()

    def _report(self, index: int, reports: Reports) -> None:
        item, hook = self._session.items[index], self._session.config.hook
        for one in reports:
            if isinstance(one, dict):
                report = hook.pytest_report_from_serializable(config=self._session.config, data=one)
            else:
                outcome, when, start, stop, text = one
                report = pytest.TestReport(
                    item.nodeid, item.location, {}, outcome, text, when, (), stop - start, start, stop
                )
            item.ihook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._session.shouldfail or self._session.shouldstop:
            self._is_over[0] = 1

    def _become(self, number: int, pipe: Connection) -> NoReturn:
        """Be a fork."""
        code = 1
        try:
            atexit._clear()  # what the other process does at its end is none of ours
            _alone(self._session.config, self._base / f"p{number}")
            _Fork(self._session, pipe, self._is_over).run()
            atexit._run_exitfuncs()
            code = 0
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            pass  # the other process has ended, or all are to end
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)


_ENDED = object()


def _received(pipe: Connection) -> Any:
    """What a fork says; there is no exception any more when it returns, which a new fork would have for its own."""
    try:
        return pipe.recv()
    except (EOFError, ConnectionResetError):
        return _ENDED


def forked() -> int:
    """Fork, as `os.fork` does, unless a thread of Python runs, whose locks nobody would release in the fork.

    Python 3.12 and later warn of any thread, also of those of OpenBLAS, which ends and begins them around a fork.
    """
    if threading.active_count() > 1:
        raise RuntimeError(f"a module of tests has started a thread when it was imported: {threading.enumerate()}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
        return os.fork()


def shared_out(count: int, work: Callable[[int], None]) -> None:
    """Do a piece of work in several forks, each of which is given its number, and wait for them.

    Raises:
        RuntimeError: One has failed.
    """
    pids = []
    for number in range(1, count):
        if (pid := forked()) == 0:
            try:
                work(number)
                os._exit(0)
            finally:
                os._exit(1)
        pids.append(pid)
    work(0)
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(codes):
        raise RuntimeError("a process that did a share of the work has failed")


def _alone(config: pytest.Config, folder: Any) -> None:
    """Have a folder of one's own for temporary files, files for what is captured, and a terminal that nobody sees."""
    plugins = config.pluginmanager
    plugins.unregister(plugins.getplugin("terminalreporter"))
    plugins.register(_Unseen(), "terminalreporter")
    captures: Any = plugins.getplugin("capturemanager")
    captures.stop_global_capturing()
    captures.start_global_capturing()
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]


class _Unseen:
    """The terminal of a fork: plugins, such as pytest-timeout, ask for its writer."""

    def __init__(self) -> None:
        self._tw = TerminalWriter(Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - it stays open


class _Fork:
    """Runs the tests that it is given, and reports them; also a plugin of pytest in that process."""

    def __init__(self, session: pytest.Session, pipe: Connection, is_over: mmap) -> None:
        self._session = session
        self._pipe = pipe
        self._is_over = is_over
        self._reports: Reports = []
        option = session.config.option
        self._is_brief = option.durations is None and not getattr(option, "xmlpath", None)

    def run(self) -> None:
        """Run tests until there are no more."""
        self._session.config.pluginmanager.register(self)
        waiting = deque(self._more())
        try:
            while waiting and not self._is_over[0]:
                index = waiting.popleft()
                if not waiting:
                    waiting.extend(self._more())
                following = self._session.items[waiting[0]] if waiting else None
                item = self._session.items[index]
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self._pipe.send((index, self._reports))
                self._reports = []
        finally:
            self._session._setupstate.teardown_exact(None)

    def _more(self) -> list[int]:
        self._pipe.send(None)
        indices: list[int] = self._pipe.recv()
        return indices

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the other process is to know of a test."""
        if not report.passed or report.user_properties or hasattr(report, "wasxfail"):
            config = self._session.config
            self._reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))
        elif report.when == "call" or not self._is_brief:
            self._reports.append(("passed", report.when, report.start, report.stop, None))


class Pieces:
    """The tests that no fork has been given yet, in pieces of files.

    Files with a test that may take longer than others come first, so that none is begun at the end, when nobody runs
    beside it. Otherwise their order is that of a checksum, which puts files that wait beside files that work.
    """

    def __init__(self, items: Sequence[pytest.Item], count: int) -> None:
        self._count = count
        self._left = len(items)
        self._files = deque(deque(one) for one in _ordered(items))

    def take(self) -> list[int]:
        """The indices of the tests of the next piece: a file, or, towards the end, a part of one."""
        if not self._files:
            return []
        most = max(_LEAST, self._left // (3 * self._count))
        file = self._files[0]
        piece = [file.popleft() for _ in range(min(most, len(file)))]
        if not file:
            self._files.popleft()
        self._left -= len(piece)
        return piece

    def give_back(self, piece: Sequence[int]) -> None:
        """What somebody took and has not done."""
        if piece:
            self._files.append(deque(piece))
            self._left += len(piece)


def _ordered(items: Sequence[pytest.Item]) -> Iterator[list[int]]:
    files: dict[str, list[int]] = {}
    long: set[str] = set()
    for index, item in enumerate(items):
        file = item.nodeid.partition("::")[0]
        files.setdefault(file, []).append(index)
        if sum(1 for _ in item.iter_markers("timeout")) > 1:  # `tests.conftest` gives each test one
            long.add(file)
    return iter([files[one] for one in sorted(files, key=lambda one: (one not in long, zlib.crc32(one.encode())))])
