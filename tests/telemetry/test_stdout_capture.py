"""What functions print, as objects."""

from __future__ import annotations

import atexit
import io
import json
import sys
import threading
from types import SimpleNamespace

import pytest

from invoker.context import RUNNING, Context
from invoker.telemetry import logs
from invoker.telemetry import stdout_capture as prints
from invoker.telemetry.stdout_capture import Prints, print_lines


@pytest.fixture
def told():
    """What was written on, line by line, and the writer."""
    lines: list[str] = []
    return lines, Prints(lines.append, lambda: lines.append("flushed"))


def test_each_line_is_an_object(told, monkeypatch):
    """With time, level and message; a line that is printed in parts is one; labels of the process stand in it."""
    monkeypatch.setitem(logs.LABELS, "worker", 3)
    lines, made = told
    for text in ("one", " ", "two", "\nthree\n\nfo", "ur"):
        assert made.write(text) == len(text)
    objects = [json.loads(line) for line in lines]
    assert [one["message"] for one in objects] == ["one two", "three", ""]
    assert {(one["level"], one["logger"], one["worker"]) for one in objects} == {("info", "print", 3)}
    assert all(line.endswith("\n") and one["time"].endswith("Z") for line, one in zip(lines, objects, strict=True))


def test_a_line_says_of_which_invocation_it_is(told):
    """Also of a part of a line, which ends when another invocation writes in the same thread."""
    lines, made = told
    trace = "0af7651916cd43dd8448eb211c80319c"
    for number in ("i1", "i2"):
        metadata = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        token = RUNNING.set(Context(invocation_id=number, function="square", metadata=metadata))
        made.write(f"of {number}")
        RUNNING.reset(token)
    made.write("of none\n")
    found = [(one["message"], one.get("invocation"), one.get("trace")) for one in map(json.loads, lines)]
    assert found == [("of i1", "i1", trace), ("of i2", "i2", trace), ("of none", None, None)]


def test_threads_do_not_mix_their_lines_and_long_ones_are_cut(told, monkeypatch):
    """Each thread has its own beginning of a line."""
    lines, made = told
    made.write("a")
    thread = threading.Thread(target=made.write, args=("b\n",))
    thread.start()
    thread.join()
    made.write("c\n")
    assert [json.loads(line)["message"] for line in lines] == ["b", "ac"]
    monkeypatch.setattr(prints, "_LONGEST", 3)
    made.write("long")
    assert json.loads(lines[-1])["message"] == "long"
    made.write("no")
    made.finish()
    made.finish()
    assert [json.loads(line)["message"] for line in lines[2:]] == ["long", "no"]


def test_flush_tells_what_was_begun(told):
    """Of the thread that asks; nothing is told where nothing was begun."""
    lines, made = told
    made.write("working")
    thread = threading.Thread(target=made.flush)
    thread.start()
    thread.join()
    assert lines == ["flushed"]
    made.flush()
    assert json.loads(lines[1])["message"] == "working"
    made.flush()
    assert lines[2:] == ["flushed", "flushed"]


def test_the_end_of_an_invocation_tells_what_it_began(told):
    """And nobody else's."""
    lines, made = told
    one, other = (Context(invocation_id=name, function="f") for name in ("i1", "i2"))
    token = RUNNING.set(one)
    made.write("working")
    RUNNING.reset(token)
    made.end(other)
    assert lines == ["flushed"]
    made.end(one)
    made.end(one)
    assert lines[2:] == ["flushed"]
    assert [json.loads(lines[1])[key] for key in ("message", "invocation")] == ["working", "i1"]


def test_standard_output_stays_the_object_that_it_is(monkeypatch):
    """Only its write is another, and only where no terminal reads it."""
    for is_terminal in (False, True):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        stream.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(atexit, "register", lambda work: None)
        monkeypatch.setattr(prints, "_MADE", [])
        print_lines(as_objects=True)
        print("hello", 7, flush=True)
        assert sys.stdout is stream
        text = stream.buffer.getvalue().decode()
        assert text == "hello 7\n" if is_terminal else json.loads(text)["message"] == "hello 7"


def test_what_the_process_prints_ends_with_the_invocation(monkeypatch):
    """The engine tells of its end; a line that it has begun does not wait for the next print."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(atexit, "register", lambda work: None)
    monkeypatch.setattr(prints, "_MADE", [])
    print_lines(as_objects=True)
    context = Context(invocation_id="i1", function="f")
    token = RUNNING.set(context)
    print("working", end="")
    RUNNING.reset(token)
    assert stream.buffer.getvalue() == b""
    prints.ended(SimpleNamespace(context=context))
    assert json.loads(stream.buffer.getvalue())["message"] == "working"
