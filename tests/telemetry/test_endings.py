"""The log line of each invocation, from a thread of its own."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.peers import Client
from invoker.core.steps import Open
from invoker.errors import Cancelled, FunctionError, InvocationError, let_go
from invoker.telemetry import logs
from invoker.telemetry.endings import Endings


def square(x: int) -> int:
    return x * x


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, log = logging.getLogger(), logging.getLogger("invoker")
    before = (list(root.handlers), root.level, log.level, logs._own[0])
    yield
    root.handlers[:], root.level, log.level, logs._own[0] = before


@pytest.fixture
def endings() -> Iterator[Endings]:
    made = Endings()
    yield made
    made.close()


def ended(error: InvocationError | None = None) -> Invocation:
    engine = Engine(Catalog([prepare_function(square).function]), builtin(entry_points=False))
    invocation = engine.open(Open("k"))
    invocation.finish(error)
    return invocation


class StoreChanged(io.StringIO):
    """A stream that tells of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.wrote = threading.Event()
        self.writes = 0

    def write(self, text: str) -> int:
        written = super().write(text)
        self.writes += 1
        self.wrote.set()
        return written


@pytest.mark.parametrize("style", ["json", "text"])
def test_lines_are_written_together_in_their_order(endings, style):
    """Many endings, few writes; each line is whole."""
    stream = StoreChanged()
    logs.set_up("info", style, stream=stream)
    invocations = [ended() for _ in range(200)]
    for one in invocations:
        endings(one)
    endings.flush()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 200
    assert stream.writes < 20
    for line, one in zip(lines, invocations, strict=True):
        assert (json.loads(line)["invocation"] == one.id) if style == "json" else (f"invocation={one.id} " in line)


def test_lines_come_by_themselves(endings):
    """Soon, without a flush."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    for _ in range(3):
        endings(ended(Cancelled("the peer cancelled")))
        assert stream.wrote.wait(2)
        stream.wrote.clear()
    assert [json.loads(line)["status"] for line in stream.getvalue().splitlines()] == ["CANCELLED"] * 3


def test_faults_are_written_at_once(endings):
    """With their traceback, in the thread that found them."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    error = FunctionError("boom")
    error.__cause__ = ValueError("boom")
    endings(ended(error))
    assert "ValueError" in json.loads(stream.getvalue())["traceback"]


@pytest.mark.parametrize("style", ["json", "text"])
def test_lines_stand_in_the_order_of_what_they_tell(endings, style):
    """Whatever is logged, faults among it, stands behind the endings before it; also in a program's own log."""
    stream = StoreChanged()
    logs.set_up("info", style, stream=stream)
    error = FunctionError("boom")
    error.__cause__ = ValueError("boom")
    expected = []
    for number in range(5):
        good, bad = ended(), ended(error)
        endings(good)
        logging.getLogger("anybody").info("line %s", number)
        endings(bad)
        endings(good)
        expected += ["invocation ended", f"line {number}", "the function raised", "invocation ended"]
    endings.flush()
    lines = [one for one in stream.getvalue().splitlines() if not one.startswith("  ")]
    assert len(lines) == len(expected)
    assert all(text in line for text, line in zip(expected, lines, strict=True))


def test_who_is_closed_writes_nothing_more_ahead(endings):
    """Its place is free, and the log does not keep it."""
    before = list(logs.AHEAD)
    other = Endings()
    assert [*before, other.flush] == logs.AHEAD
    other.close()
    other.close()
    assert before == logs.AHEAD


def test_what_waits_is_written_when_the_process_stops():
    """Close does not lose a line, and ends the thread."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    endings = Endings()
    for _ in range(10):
        endings(ended())
    endings.close()
    assert len(stream.getvalue().splitlines()) == 10
    assert endings._thread is not None
    assert not endings._thread.is_alive()


def test_an_ending_after_the_close_is_written_too():
    """Of a function that left late."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    endings = Endings()
    endings(ended())
    endings.close()
    endings(ended())
    assert len(stream.getvalue().splitlines()) == 2


def test_below_the_level_nothing_is_kept(endings):
    """At WARNING, good endings cost nothing."""
    logs.set_up("warning", "json", stream=StoreChanged())
    endings(ended())
    assert not endings._waiting


@pytest.mark.parametrize("style", ["json", "text"])
def test_other_lines_keep_their_place_among_endings(endings, style):
    """With the name of who says so, as it is: no sign in them means anything."""
    stream = StoreChanged()
    logs.set_up("info", style, stream=stream)
    endings(ended())
    endings.note("invoker.door", "POST /100%s answered", {"bytes": 7})
    endings(ended())
    endings.flush()
    line = stream.getvalue().splitlines()[1]
    if style == "text":
        assert line.endswith("POST /100%s answered  bytes=7")
    else:
        told = json.loads(line)
        assert (told["logger"], told["message"], told["bytes"]) == ("invoker.door", "POST /100%s answered", 7)


def test_other_lines_are_records_for_who_set_up_logging(endings, caplog):
    """Of the logger that they name."""
    with caplog.at_level(logging.INFO, logger="invoker"):
        endings.note("invoker.door", "100%s", {"bytes": 7})
        endings.flush()
    (record,) = [record for record in caplog.records if record.name == "invoker.door"]
    assert (record.getMessage(), record.bytes) == ("100%s", 7)


def test_who_set_up_logging_gets_records(endings, caplog):
    """With their time and what is in ``extra``."""
    with caplog.at_level(logging.INFO, logger="invoker"):
        one = ended()
        endings(one)
        endings.flush()
    (record,) = [record for record in caplog.records if record.getMessage() == logs.ENDED]
    assert (record.invocation, record.status, record.levelname) == (one.id, "OK", "INFO")


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_line_that_cannot_be_written_harms_no_other(endings, style, capsys):
    """A lone surrogate in a text, or a stream that fails: the endings that follow are written."""
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    logs.set_up("info", style, stream=stream)
    endings(ended(Cancelled("a\ud800b")))
    endings.flush()
    endings(ended())
    endings.flush()
    assert b"status" in stream.buffer.getvalue().splitlines()[-1]
    assert b"OK" in stream.buffer.getvalue().splitlines()[-1]


@pytest.mark.parametrize("error", [None, FunctionError("boom")])
def test_E129_the_line_of_a_nested_invocation_names_its_caller(endings, error):
    """An ordinary ending and a fault both say whose invocation has called; other lines say nothing of it."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    engine = Engine(Catalog([prepare_function(square).function]), builtin(entry_points=False))
    parent = engine.open(Open("k"))
    child = engine.open(Open("k", caller=parent.context))
    for one in (child, parent):
        one.finish(error)
        endings(one)
    endings.flush()
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["invocation"], first["parent"]) == (child.id, parent.id)
    assert "parent" not in second


def answered(client: Client, error: InvocationError | None = None) -> Invocation:
    """One that has ended, and whose client may still get something."""
    invocation = ended(error)
    invocation.peer = client
    return invocation


def raised() -> InvocationError:
    """What a function raised, with a traceback."""
    try:
        raise ValueError("boom")
    except ValueError as cause:
        error = FunctionError("boom")
        error.__cause__ = cause
        return error


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize("fault", [False, True])
def test_a_line_waits_for_its_response_and_holds_up_no_other(endings, style, fault):
    """Lines that come meanwhile are written; the traceback is kept, though nobody keeps its frames."""
    stream = StoreChanged()
    logs.set_up("info", style, stream=stream)
    client, error = Client("ipv4:192.0.2.1:5"), raised() if fault else None
    endings(answered(client, error))
    let_go(error)
    logging.getLogger("anybody").info("between")
    assert "between" in stream.getvalue()
    assert "invocation ended" not in stream.getvalue()
    stream.wrote.clear()
    client.got(418)
    client.got(200)
    assert stream.wrote.wait(5)
    line = stream.getvalue().split("between")[1]
    assert ("http_status=418" if style == "text" else '"http_status":418') in line.replace(": ", ":")
    assert ("in raised" in line and "ValueError: boom" in line) == fault


@pytest.mark.parametrize("error", [None, raised()])
def test_a_line_does_not_wait_for_ever(endings, monkeypatch, error):
    """For a response that never comes; nor for what is not asked for; nor when the process ends."""
    stream = StoreChanged()
    logs.set_up("info", "json", stream=stream)
    monkeypatch.setattr("invoker.telemetry.endings._PATIENCE_S", 0.2)
    endings(answered(Client("a"), error))
    assert stream.wrote.wait(5)
    endings(answered(Client("b", field=""), error))
    endings.flush()
    monkeypatch.setattr("invoker.telemetry.endings._PATIENCE_S", 60)
    endings(answered(Client("c"), error))
    endings.flush()
    assert stream.getvalue().count("invocation ended") == 2
    endings.close()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [one["peer"] for one in lines] == ["a", "b", "c"]
    assert not any("http_status" in one or "" in one for one in lines)
