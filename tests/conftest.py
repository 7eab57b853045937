"""What every test gets: a time limit, and a look at what it leaves behind.

``INVOKER_TEST_SLOW`` is the factor by which this machine may be slower than the one a limit was written for.
``INVOKER_TEST_EXPLORE=20`` tries twenty times as many examples of each property, which are others each time.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import certifi
import hypothesis
import pytest

from tests.forkpool import processes, pytest_addoption, pytest_runtestloop, shared_out
from tests.rewriting import collected, rewrite_share

__all__ = ["pytest_addoption", "pytest_runtestloop"]  # hooks of `tests.forkpool`

LIMIT_S = 5.0
SLOW = float(os.environ.get("INVOKER_TEST_SLOW", "4"))

EXPLORE = int(os.environ.get("INVOKER_TEST_EXPLORE", "0"))

# Each test has a limit as a whole; an example that takes longer than others only says that the machine is busy.
# Examples are the same each time, so that a change is judged by what it changes; what is rare is sought by exploring.
hypothesis.settings.register_profile(
    "house",
    deadline=None,
    derandomize=not EXPLORE,
    database=None,
    print_blob=True,
    max_examples=100 * (EXPLORE or 1),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("house")


class _Exploring(hypothesis.settings):
    """Settings with more examples than a test asks for, drawn by chance whatever it says."""

    def __init__(self, parent: hypothesis.settings | None = None, **given: Any) -> None:
        if "max_examples" in given:
            given["max_examples"] *= EXPLORE
        super().__init__(parent, **{**given, "derandomize": False})


if EXPLORE:
    hypothesis.settings = _Exploring  # before any module of tests takes it

# Families that take a third of the time; `make check` runs them, `make test` leaves them out: attacks and leaks, then
# what judges the house itself, its tools, its benchmarks, its conformance suite, and planted faults.
SLOW_FAMILIES = (
    "tests/attack/",
    "tests/execution/loop/test_sessions_leaks.py",
    "tests/execution/test_leaks.py",
    "tests/protocols/evergreen/test_bombs.py",
    "tests/conformance/",
    "tests/reference/test_planted.py",
    "tests/test_benchmark",
    "tests/tools/",
)

# Where the environment forbids Python to keep bytecode, each of the hundreds of programs that tests start would compile
# the whole package again; that took a quarter of the suite's time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Under nohup it is ignored, which the programs that tests start would inherit; what it does is a part of their tests.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A client of httpx reads the certificates that certifi has, which takes 50 ms. Tests that speak TLS trust their own.
certifi.where = lambda: str(Path(__file__).parent / "data" / "authority.pem")

# Threads of libraries that live as long as the process; whoever starts them first is not to blame.
_HOUSE_THREADS = ("pydevd", "ThreadPoolExecutor", "grpc", "Thread-", "invoker-guard")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Hide what is made here from the collector: modules and thousands of tests, which live as long as the process.

    Each full collection would look at half a million objects, which takes half a second, in the midst of some test.
    """
    gc.disable()
    try:
        if worker := getattr(session.config, "workerinput", None):
            number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
            rewrite_share(session.config, collected(session.config), number, count)
        elif processes(session.config):
            cores, files = os.cpu_count() or 1, collected(session.config)
            shared_out(cores, lambda number: rewrite_share(session.config, files, number, cores))
        return (yield)
    finally:
        freeze()
        gc.enable()


def case_name(value: object) -> str:
    """The name of a case by its value, without addresses: those differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:60]


def freeze() -> None:
    """The collector looks only at what is made from here on."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def thawed() -> Iterator[None]:
    """As in a process in which nobody has frozen anything."""
    gc.unfreeze()
    yield
    freeze()


@pytest.hookimpl(tryfirst=True)  # before a choice by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow families, limit each test, and refuse names that no other process would have.

    The limit is 5 s, or what its own ``timeout`` mark says, times ``INVOKER_TEST_SLOW``.
    """
    if odd := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"{odd[0]} has an address in its name; give its cases `ids=case_name`")
    for item in items:
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0] if mark and mark.args else LIMIT_S)
        item.add_marker(_limit(seconds * SLOW * (EXPLORE or 1)), append=False)
        if item.nodeid.startswith(SLOW_FAMILIES):
            item.add_marker("slow")


@functools.cache
def _limit(seconds: float) -> pytest.MarkDecorator:
    return pytest.mark.timeout(seconds)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """pytest's own; modules that a test has written there and imported are forgotten, since another test may have their
    names.
    """
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture(scope="session")
def slow() -> float:
    """The factor for limits that a test sets itself."""
    return SLOW


@pytest.fixture(scope="session")
def forked_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ``python`` that has imported invoker: see `tests.forkserver.install`."""
    from tests.forkserver import install  # it notes the environment, which is settled above

    return install(tmp_path_factory.mktemp("python"))


@contextmanager
def cpu_within(limit_s: float) -> Iterator[None]:
    """Fail if the block takes more of the processor in this thread; what other tests have left is not counted.

    Collecting that may take a second, and falls to whoever allocates next.
    """
    gc.disable()
    began_s = time.thread_time()
    try:
        yield
        took_s = time.thread_time() - began_s
    finally:
        gc.enable()
    assert took_s < limit_s, f"it took {took_s:.2f} s"


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a thread of ours running, a task whose error nobody saw, or another environment.

    A changed environment would make each later server of the same worker start without a fork (`tests.forkserver`).

    Our threads are those with a name of their own; ``leaks_threads`` excuses a test that abandons one on purpose.
    """
    before, environment = set(threading.enumerate()), _environment()
    complaints = _Complaints()
    logger = logging.getLogger("asyncio")
    logger.addHandler(complaints)
    yield
    logger.removeHandler(complaints)
    if request.node.get_closest_marker("leaks_threads") is None:
        left = _left(before, within_s=SLOW)
        assert not left, f"threads are still running: {left}"
    now = _environment()
    changed = sorted({os.fsdecode(name) for name, _ in environment.items() ^ now.items()})
    assert not changed, f"variables of the environment are not as before: {changed}"
    assert not complaints.texts, "asyncio complained of this test or one before it: " + "; ".join(complaints.texts)


def _environment() -> dict[bytes, bytes]:
    """But for what pytest notes there, and what `invoker.cli.main` sets once: a copy, without decoding its strings."""
    kept: dict[bytes, bytes] = dict(os.environ._data)  # type: ignore[attr-defined]
    for name in (b"PYTEST_CURRENT_TEST", b"GRPC_VERBOSITY"):
        kept.pop(name, None)
    return kept


def _left(before: set[threading.Thread], *, within_s: float) -> list[str]:
    ends = time.monotonic() + within_s
    while True:
        left = [one for one in threading.enumerate() if one not in before and one.is_alive()]
        names = [one.name for one in left if not one.name.startswith(_HOUSE_THREADS)]
        if not names or time.monotonic() > ends:
            return names
        time.sleep(0.005)


class _Complaints(logging.Handler):
    """Keeps what asyncio logs as an error: tasks destroyed while pending, exceptions never retrieved."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text.

        All loops of grpc.aio in a process wait at one descriptor: whoever comes second finds it empty, and what an
        earlier test's loop waited for may complete after that loop was closed: grpc#25364. Those complaints are not
        about us. Drop when grpcio says that it is mended.
        """
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, (BlockingIOError, RuntimeError)) and "PollerCompletionQueue" in record.getMessage():
            return
        self.texts.append(record.getMessage())
