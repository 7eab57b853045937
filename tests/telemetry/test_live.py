"""What is told of the invocations of a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.budget import Limits
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.steps import EndInput, Feed, Open
from invoker.errors import Cancelled, ProtocolViolation
from invoker.message import Message
from invoker.telemetry.live import _MOST_NOTED, MOST_INVOCATIONS, Live
from invoker.telemetry.logs import LABELS


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    for word, count in zip(words, counts, strict=False):
        yield word * count


def engine_of(**limits: int) -> Engine:
    return Engine(Catalog([prepare_function(repeat).function]), builtin(entry_points=False), limits=Limits(**limits))


def feed(invocation: Invocation, index: int, *texts: str) -> None:
    for text in texts:
        invocation.feed(Feed("a", index, Message(text.encode(), media_type="text/plain")))


def streams(told: dict[str, Any], way: str) -> list[tuple[Any, ...]]:
    return [(one["frames"], one["bytes"], one["isEnded"]) for one in told[way]]


def test_H074_frames_bytes_and_queues_are_told_by_stream() -> None:
    """What came, what waits, and what left; never what it is."""
    engine = engine_of()
    invocation = engine.open(Open("a"))
    feed(invocation, 0, "secret", "tart")
    feed(invocation, 1, "3133731337")
    invocation.inputs[0].take()
    invocation.end_inputs(EndInput("a", 1))
    invocation.emit(*invocation.encode(0, "hidden"))
    (told,) = Live(engine).snapshot()["invocations"]
    assert (told["id"], told["function"], told["status"]) == (invocation.id, "repeat", "running")
    assert streams(told, "inputs") == [(2, 10, False), (1, 10, True)]
    assert [(one["queuedFrames"], one["queuedBytes"]) for one in told["inputs"]] == [(1, 4), (1, 10)]
    assert streams(told, "outputs") == [(1, len('"hidden"'), False)]
    text = json.dumps(told)
    assert not any(one in text for one in ("secret", "tart", "3133731337", "hidden"))


def test_H074_back_pressure_is_told() -> None:
    """Reading pauses at the mark, unless the function waits for an empty input; outputs wait for a slow peer."""
    engine = engine_of(high_frames=2)
    invocation = engine.open(Open("a"))
    live = Live(engine)
    feed(invocation, 0, "a", "b", "c")
    (told,) = live.snapshot()["invocations"]
    assert [(one["isPaused"], one["isAwaited"]) for one in told["inputs"]] == [(True, False), (True, False)]
    assert told["inputs"][0]["highFrames"] == 2
    assert not told["outputs"][0]["isBlocked"]
    invocation.blocked = 1
    assert live.snapshot()["invocations"][0]["outputs"][0]["isBlocked"]
    invocation.inputs[1].waiters = 1
    (told,) = live.snapshot()["invocations"]
    assert [(one["isPaused"], one["isAwaited"]) for one in told["inputs"]] == [(False, False), (False, True)]


def test_H074_long_queues_are_told_by_their_length() -> None:
    """Nobody adds up thousands of frames, one by one; the sum is right."""
    engine = engine_of()
    invocation = engine.open(Open("a"))
    feed(invocation, 0, *("four" for _ in range(900)))
    feed(invocation, 1, *("4" for _ in range(300)))
    (told,) = Live(engine).snapshot()["invocations"]
    assert [one["queuedBytes"] for one in told["inputs"]] == [2925, 975]


@pytest.mark.parametrize(("error", "status"), [(None, "OK"), (Cancelled("of no concern"), "CANCELLED")])
def test_H076_what_ends_is_told_while_somebody_watches(error: Cancelled | None, status: str) -> None:
    """By its status alone, with its last numbers; and for ten seconds."""
    engine = engine_of()
    live = Live(engine)
    with live.watching():
        invocation = engine.open(Open("a"))
        feed(invocation, 0, "x")
        invocation.finish(error)
        engine.close(invocation)
        (told,) = live.snapshot()["invocations"]
        assert (told["status"], told["sinceS"]) == (status, round(invocation.took_s, 3))
        assert streams(told, "inputs") == [(1, 1, True), (0, 0, True)]
        assert "concern" not in json.dumps(told)
        assert live.snapshot()["counts"]["finished"] == {status: 1}


def test_H076_what_has_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time, and when nobody watches any more."""
    engine = engine_of()
    live = Live(engine)
    with live.watching():
        invocation = engine.open(Open("a"))
        invocation.finish(None)
        engine.close(invocation)
        assert live.snapshot()["invocations"]
        monkeypatch.setattr("invoker.telemetry.live._KEPT_S", 0.0)
        assert not live.snapshot()["invocations"]
        monkeypatch.undo()
    assert not live.snapshot()["invocations"]


def test_H076_of_many_that_end_a_part_is_told() -> None:
    """So that watching costs calls next to nothing; the sums have all of them."""
    engine = engine_of()
    live = Live(engine)
    with live.watching():
        for _ in range(2):
            for _ in range(_MOST_NOTED + 5):
                invocation = engine.open(Open("a"))
                invocation.finish(None)
                engine.close(invocation)
            told = live.snapshot()
        assert len(told["invocations"]) == 2 * _MOST_NOTED
        assert told["counts"]["finished"] == {"OK": 2 * (_MOST_NOTED + 5)}


def test_H076_without_watchers_nothing_hears_of_endings() -> None:
    """The first one listens to the engine, the last one stops; who iterates meanwhile sees no change."""
    engine = engine_of()
    engine.on_close.append(print)
    before = engine.on_close
    live = Live(engine)
    with live.watching():
        during = engine.on_close
        with live.watching():
            assert len(engine.on_close) == 2
        assert len(engine.on_close) == 2
        assert before == [print]
        assert during is not before
    assert engine.on_close == [print]


def test_H075_a_snapshot_has_so_many_invocations() -> None:
    """The newest; the number of the others is told, and so is how many were refused."""
    engine = engine_of()
    opened = [engine.open(Open("a")) for _ in range(MOST_INVOCATIONS + 5)]
    with pytest.raises(ProtocolViolation):
        engine.open(Open("a", input_names=("x",)))
    told = Live(engine).snapshot()
    assert [one["id"] for one in told["invocations"]] == [one.id for one in reversed(opened[5:])]
    assert (told["left"], told["counts"]["running"], told["counts"]["refused"]) == (5, MOST_INVOCATIONS + 5, 1)
    assert json.loads(Live.encoded(told)) == told


def test_H207_the_worker_is_told_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since the others have invocations of their own."""
    monkeypatch.setitem(LABELS, "worker", 2)
    assert {"worker", "workers"}.isdisjoint(Live(engine_of()).snapshot())
    told = Live(engine_of(), workers=4).snapshot()
    assert (told["worker"], told["workers"]) == (2, 4)
