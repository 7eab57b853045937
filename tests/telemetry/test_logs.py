"""Log lines."""

import ast
import io
import json
import logging
import re
import sys
from select import PIPE_BUF

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Open
from invoker.errors import Cancelled, EncodeError, FunctionError, UnacceptedType
from invoker.telemetry import logs
from invoker.telemetry.endings import Endings
from invoker.telemetry.logs import JsonFormatter, TextFormatter, log_ending, set_up
from invoker.telemetry.ready import ready_block
from invoker.telemetry.stdout_capture import Prints
from tests import opsdoc
from tests.serving import ROOT


def record(**extra):
    made = logging.makeLogRecord({"name": "invoker.x", "msg": "n %s", "args": (1,), "levelno": 20, "levelname": "INFO"})
    vars(made).update(extra)
    return made


def test_json_lines_carry_what_is_in_extra():
    """One object a line, with time, level, logger and message."""
    line = json.loads(JsonFormatter().format(record(invocation="i1", seconds=0.5)))
    assert line["message"] == "n 1"
    assert (line["level"], line["logger"], line["invocation"], line["seconds"]) == ("info", "invoker.x", "i1", 0.5)
    assert line["time"].endswith("Z")


def test_what_labels_a_process_stands_in_every_line(monkeypatch):
    """The number of a worker; what the line itself says goes first."""
    monkeypatch.setitem(logs.LABELS, "worker", 3)
    assert json.loads(JsonFormatter().format(record(invocation="i1")))["worker"] == 3
    assert TextFormatter().format(record(invocation="i1")).endswith("n 1  invocation=i1 worker=3")


def test_text_lines_are_for_people():
    """Clock, level, message, then pairs."""
    line = TextFormatter().format(record(invocation="i1"))
    assert line.endswith("INFO    n 1  invocation=i1")


def test_text_lines_do_not_steer_a_terminal():
    """Control characters are escaped, and nobody can forge a line: not by a message, a field, nor an exception."""
    forged = "x\n12:00:00.000 INFO    forged\x1b[2J\x9b1m\u2028"
    escaped = r"x\n12:00:00.000 INFO    forged\x1b[2J\x9b1m\u2028"
    for made in (record(invocation=forged), record(msg=forged, args=())):
        assert escaped in TextFormatter().format(made)
        assert "\n" not in TextFormatter().format(made)
    try:
        raise ValueError(forged)
    except ValueError as error:
        first, *rest = TextFormatter().format(record(exc_info=(ValueError, error, error.__traceback__))).split("\n")
    assert first.endswith("n 1")
    assert rest[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
    assert r"  12:00:00.000 INFO    forged\x1b[2J" in rest[-1]


@pytest.fixture
def _restored():
    root, house = logging.getLogger(), logging.getLogger("invoker")
    handlers, levels = list(root.handlers), (root.level, house.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    house.setLevel(levels[1])


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(("style", "is_json"), [("auto", True), ("json", True), ("text", False)])
def test_the_format_is_json_unless_a_person_looks(style, is_json):
    """'auto' is JSON where the stream is no terminal."""
    stream = io.StringIO()
    set_up("info", style, stream=stream)
    logging.getLogger("invoker.test").info("hello", extra={"k": "v"})
    logging.getLogger("invoker.test").debug("hidden")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("{") is is_json


def square(x: int) -> int:
    return x * x


def ended(error, function=square):
    engine = Engine(Catalog([prepare_function(function).function]), builtin(entry_points=False))
    invocation = engine.open(Open("a"))
    invocation.finish(error)
    engine.close(invocation)
    return invocation


@pytest.mark.parametrize(
    ("error", "level"), [(None, "INFO"), (Cancelled("x"), "INFO"), (FunctionError("boom"), "WARNING")]
)
def test_R117_each_ending_is_one_line(caplog, error, level):
    """A function's own exception is a warning with its traceback; everything else is information."""
    if isinstance(error, FunctionError):
        error.__cause__ = ValueError("boom")
    caplog.set_level("INFO", "invoker")
    log_ending(ended(error))
    (line,) = caplog.records
    assert line.levelname == level
    assert (line.function, line.frames_in) == ("square", 0)
    assert bool(line.exc_info) is (level == "WARNING")


def test_what_cannot_be_sent_is_told_with_the_functions_line(caplog):
    """Its traceback is only of our codecs."""
    log_ending(ended(EncodeError("output #0: T this media type cannot represent it")))
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("WARNING", "invocation ended: what the function gave cannot be sent")
    assert re.fullmatch(r".*test_logs\.py:\d+", line.where)


def test_H221_a_type_that_is_not_accepted_is_no_failure_of_the_function(caplog):
    """Nobody has to look at it."""
    caplog.set_level("INFO", "invoker")
    log_ending(ended(UnacceptedType(" was given", met="image/png")))
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("INFO", "invocation ended")


def test_a_str_that_arrives_where_arithmetic_is_done_gets_a_hint(caplog):
    """Where nothing is annotated; elsewhere the annotation has been met."""
    error = FunctionError("x")
    error.__cause__ = TypeError('can only concatenate str (not "int") to str')
    log_ending(ended(error, lambda number: number + 1))
    log_ending(ended(error))
    bare, annotated = caplog.records
    assert bare.hint == "'number' has no annotation, so text arrives as a str; annotate it: number: float"
    assert not hasattr(annotated, "hint")


@pytest.mark.usefixtures("_restored")
def test_workers_write_pieces_that_a_pipe_takes_whole(monkeypatch):
    """Else the lines of two of them, which share standard error, would be mixed up; every line has its label."""
    monkeypatch.setitem(logs.LABELS, "worker", 3)
    pieces = []
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", pieces.append)
    set_up("info", "json", stream=stream)
    engine = Engine(Catalog([prepare_function(identity).function]), builtin(entry_points=False))
    endings = Endings()
    engine.on_close.append(endings)
    for _ in range(100):
        invocation = engine.open(Open("a"))
        invocation.finish(None)
        engine.close(invocation)
    endings.close()
    assert len(pieces) > 1
    assert all(len(piece) <= PIPE_BUF and piece.endswith("\n") for piece in pieces)
    lines = [json.loads(line) for piece in pieces for line in piece.splitlines()]
    assert [line["worker"] for line in lines] == [3] * 100


def identity(x: int) -> int:
    return x


MAKERS = ("called", "ending", "ending_record", "invoked", "traced", "_logged", "tell")
"""Functions that make the fields of a line."""


def logged_fields() -> set[str]:
    """The names of all fields that the code gives to its log lines."""
    found = {"worker", "traceback", "stacks", "http_status", "close_code"}
    marks = re.compile(rf"\bextra=|\bdef (?:{'|'.join(MAKERS)})\(")
    for path in (ROOT / "invoker").rglob("*.py"):
        text = path.read_text()
        if not marks.search(text):
            continue  # to parse all files takes seconds
        tree = ast.parse(text)
        dicts = [one.value for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg == "extra"]
        for one in ast.walk(tree):
            if isinstance(one, ast.FunctionDef) and one.name in MAKERS:
                dicts += [part for part in ast.walk(one) if isinstance(part, ast.Dict)]
                dicts += [part for part in ast.walk(one) if isinstance(part, ast.Subscript)]
        for one in dicts:
            keys = one.keys if isinstance(one, ast.Dict) else [one.slice] if isinstance(one, ast.Subscript) else []
            found |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return found | {line.partition(": ")[0] for line in ready_block(["f"], "a", "b", "c", "d", "e").split("\n")[1:]}


def test_the_reference_has_every_field():
    """And none that no line has."""
    assert logged_fields() == set(opsdoc.FIELDS)
    line = json.loads(JsonFormatter().format(record()))
    assert set(line) == set(opsdoc.ALWAYS)


def test_H091_a_log_that_is_borrowed_is_given_back(monkeypatch):
    """Nothing is taken from a program that has set up its own."""
    root, stream = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(sys, "stderr", stream)
    loggers = [root, logging.getLogger("invoker"), logging.getLogger("asyncio")]
    before, own = [one.level for one in loggers], logs._own[0]
    with logs.borrowed("debug", "text"):
        assert logs.own_handler() is root.handlers[0]
        logging.getLogger("invoker").debug("told")
    assert "told" in stream.getvalue()
    assert (root.handlers, [one.level for one in loggers], logs._own[0]) == ([], before, own)
    theirs = logging.NullHandler()
    root.handlers.append(theirs)
    with logs.borrowed("debug", "text"):
        assert root.handlers == [theirs]
    assert [one.level for one in loggers] == before


SIGNS = [*map(chr, range(1, 32)), *map(chr, range(127, 160)), "\u2028", "\u2029", "\u00e4", "\U0001f680"]
"""Signs of which readers make the end of a line, or terminals a command, and others."""


def as_record(text):
    return JsonFormatter().format(record(said=text)) + "\n"


def as_note(text):
    stream, endings = io.StringIO(), Endings()
    set_up("info", "json", stream=stream)
    endings.note("invoker.x", "m", {"said": text})
    endings.close()
    return stream.getvalue()


def as_print(text):
    lines = []
    Prints(lines.append, lambda: None).write(text + "\n")
    return "".join(lines)


@pytest.mark.parametrize("write", [as_record, as_note, as_print])
def test_a_line_of_json_is_one_line_for_every_reader(write):
    """Whatever a caller or a function says; and it says that still."""
    before = logging.getLogger().handlers[:]
    try:
        for sign in SIGNS:
            if write is as_print and sign in "\n\r":
                continue  # these end a line that is printed
            line = write(f"a{sign}b")
            assert line.splitlines() == [line[:-1]], hex(ord(sign))
            assert not set(line[:-1]) & set(map(chr, range(127, 160)))
            told = json.loads(line)
            assert f"a{sign}b" in (told.get("said"), told["message"])
        assert "\u00e4" in write("\u00e4"), "what is harmless is readable"
    finally:
        logging.getLogger().handlers[:] = before


def test_stacks_are_one_record():
    """In text they are indented, as a traceback is, and escaped; in JSON they are a field."""
    made = record(stack_info="Thread 1:\n  File x\x1b[2J")
    assert TextFormatter().format(made).split("\n")[1:] == ["  Thread 1:", r"    File x\x1b[2J"]
    assert json.loads(JsonFormatter().format(made))["stacks"] == "Thread 1:\n  File x\x1b[2J"


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("info", ["a INFO", "a.b INFO"]),
        ("warning,a.b=debug", ["a.b DEBUG", "a.b INFO"]),
        ("debug,a=error,a.b=info", ["a.b INFO"]),
        ("info,a=error", []),
    ],
)
def test_loggers_may_have_levels_of_their_own(level, told):
    """They hold for those below, too, until a nearer one is said; what was before comes back behind a borrowed log."""
    stream, names = io.StringIO(), ("a", "a.b")
    root, ours = logging.getLogger(), logging.getLogger("invoker")
    handlers, before = list(root.handlers), (root.level, ours.level)
    try:
        set_up(level, "json", stream=stream)
        for name in names:
            logging.getLogger(name).debug("x")
            logging.getLogger(name).info("x")
    finally:
        root.handlers[:] = handlers
        root.setLevel(before[0])
        ours.setLevel(before[1])
        for name in names:
            logging.getLogger(name).setLevel(logging.NOTSET)
    lines = map(json.loads, stream.getvalue().splitlines())
    assert [f"{one['logger']} {one['level'].upper()}" for one in lines] == told
