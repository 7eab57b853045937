"""`Metrics`: what the engine counted, as Prometheus reads it."""

import os
import re

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Feed, Open
from invoker.errors import Cancelled, Status
from invoker.execution.driver import Driver
from invoker.message import Message
from invoker.telemetry.board import Board, Numbers, Row
from invoker.telemetry.logwriter import LogWriter
from invoker.telemetry.metrics import RELOADS, RESTARTS, WANTED, WORKERS, Metrics, numbers_of
from tests.gendocs import table
from tests.opsdoc import metrics_page


def double(x: int) -> int:
    return 2 * x


async def test_each_ending_is_counted_by_its_status() -> None:
    """Invocations, messages and bytes add up when an invocation is closed."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    driver = Driver(engine)
    metrics = Metrics(lambda: numbers_of(engine, driver))
    for error in (None, None, Cancelled("gone")):
        invocation = engine.open(Open("a"))
        invocation.feed(Feed("a", 0, Message(b"12", media_type="text/plain")))
        invocation.emit(0, Message(b"24", media_type="text/plain"))
        invocation.finish(error)
        engine.close(invocation)
    running = engine.open(Open("b"))
    kind, text = metrics.render()
    lines = text.decode().splitlines()
    assert kind.startswith("text/plain")
    assert 'invoker_invocations_total{status="OK"} 2.0' in lines
    assert 'invoker_invocations_total{status="CANCELLED"} 1.0' in lines
    assert "invoker_frames_in_total 3.0" in lines
    assert "invoker_in_bytes_total 6.0" in lines
    assert "invoker_out_bytes_total 6.0" in lines
    assert "invoker_running_invocations 1.0" in lines
    engine.close(running)


async def test_stuck_threads_are_told() -> None:
    """A thread that user code does not give back is visible."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    driver = Driver(engine)
    driver.threads.stuck = 3
    _, text = Metrics(lambda: numbers_of(engine, driver)).render()
    assert b"invoker_stuck_threads 3.0" in text


async def test_lines_that_were_dropped_are_counted() -> None:
    """Whichever writer had no room for them."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    metrics = Metrics(lambda: numbers_of(engine, Driver(engine)))

    def told() -> float:
        return float(
            re.findall(r"^invoker_log_lines_dropped_total (\S+)$", metrics.render()[1].decode(), re.MULTILINE)[0]
        )

    before = told()
    ours, theirs = os.pipe()
    os.close(ours)  # so nobody can read what is written
    writers = LogWriter(theirs), LogWriter(theirs)
    for number, writer in enumerate(writers, 1):
        writer.write("line\n" * number)
    assert told() == before + 3
    os.close(theirs)


def test_a_process_of_its_own_says_nothing_of_workers() -> None:
    """There are none, so there are no such families."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    driver = Driver(engine)
    _, text = Metrics(lambda: numbers_of(engine, driver)).render()
    assert b"worker" not in text


def test_a_worker_tells_the_sum_of_all() -> None:
    """Endings by status, and the supervisor's own numbers."""
    board = Board.make()
    board.write(
        0, Row(numbers=Numbers({"invoker_invocations OK": 5, RESTARTS: 1, RELOADS: 0}, {WORKERS: 2, WANTED: 2}))
    )
    board.write(1, Row(1, numbers=Numbers({"invoker_invocations OK": 2, "invoker_frames_in": 3.0}, {})))
    board.write(2, Row(2, numbers=Numbers({"invoker_invocations CANCELLED": 1, "invoker_frames_in": 4.0}, {})))
    _, text = Metrics(board.total).render()
    board.close()
    lines = text.decode().splitlines()
    for line in (
        'invoker_invocations_total{status="OK"} 7.0',
        'invoker_invocations_total{status="CANCELLED"} 1.0',
        "invoker_frames_in_total 7.0",
        "invoker_worker_restarts_total 1.0",
        "invoker_worker_reloads_total 0.0",
        "invoker_workers 2.0",
        "invoker_wanted_workers 2.0",
    ):
        assert line in lines


async def test_sessions_are_counted_by_their_status() -> None:
    """Open ones are a gauge; how the others ended is a family of its own."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    driver = Driver(engine)
    driver.sessions.running = 2
    driver.sessions.ended = {Status.OK: 5, Status.NOT_FOUND: 1}
    lines = Metrics(lambda: numbers_of(engine, driver)).render()[1].decode().splitlines()
    assert "invoker_running_sessions 2.0" in lines
    assert 'invoker_sessions_total{status="OK"} 5.0' in lines
    assert 'invoker_sessions_total{status="NOT_FOUND"} 1.0' in lines


async def test_the_reference_has_every_metric() -> None:
    """And none that is not given."""
    engine = Engine(Catalog([prepare_function(double).function]), builtin(entry_points=False))
    driver = Driver(engine)
    workers = Numbers(
        {RESTARTS: 1, RELOADS: 1, "invoker_invocations OK": 1, "invoker_sessions OK": 1}, {WORKERS: 2, WANTED: 2}
    )
    _, text = Metrics(lambda: numbers_of(engine, driver).plus(workers)).render()
    given = {line.partition(" ")[0] for line in text.decode().splitlines() if not line.startswith("#")}
    page = "\n".join(metrics_page("", table)).partition("Where the tool bridge is served")[0]
    assert given == set(re.findall(r"^\| `(\S+)` \|", page, re.MULTILINE))
