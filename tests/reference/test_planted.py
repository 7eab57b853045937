"""Faults that are planted in the drivers are found by the comparison with the reference.

A fault is a change of the source of one method; one whose text is gone must be planted anew.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from invoker.execution.bodies.loop import LoopInput, LoopRunner
from invoker.execution.bodies.sync import SyncBody, SyncInput
from invoker.execution.loop.reactor import Reactor
from invoker.execution.thread.direct import DirectConversation
from invoker.execution.thread.single import Single
from invoker.execution.whole import Whole
from tests.reference.functions import NAMES
from tests.reference.players import PLAYERS, engine_of
from tests.reference.protocols import riff
from tests.reference.steps import steps
from tests.reference.test_drivers import EXAMPLES, compare, scripts

FAULTS: dict[str, tuple[str, Any, str, str, str]] = {
    "a thread loses the last output": ("thread", Single, "send_all", "in values:", "in list(values)[:-1]:"),
    "the last output of a whole call is lost": ("whole", Whole, "send_all", "in values:", "in list(values)[:-1]:"),
    "an output ends twice": (
        "reactor, async",
        Reactor,
        "ended",
        "if not",
        "self._deliver(OutputEnded(invocation.key, index))\n    if not",
    ),
    "the end of an output is not told": ("reactor, async", Reactor, "ended", "if not invocation.is_finished", "if 0"),
    "a value follows the end of its output": (
        "reactor, async",
        Reactor,
        "emitted",
        "self._deliver(",
        "asyncio.get_running_loop().call_soon(self._deliver, ",
    ),
    "outputs are swapped": ("thread", Single, "send_all", "Emitted(key, number", "Emitted(key, 1 - number"),
    "outputs are swapped on the loop": (
        "reactor, async",
        Reactor,
        "emitted",
        "invocation.key, index",
        "invocation.key, 1 - index",
    ),
    "an error is swallowed": ("thread", SyncBody, "raised", "self.break_off(self.failure)", "pass"),
    "an error is swallowed on the loop": (
        "reactor, async",
        LoopRunner,
        "_raised",
        "self.host.finished(",
        "(lambda *_: None)(",
    ),
    "a wrong payload is swallowed": (
        "thread",
        SyncInput,
        "__next__",
        "self._body.raised(error, production_failed)",
        "pass",
    ),
    "a cancel by the session is ignored": (
        "reactor, async",
        Reactor,
        "_command",
        "self._finish(runner, step.error)",
        "pass",
    ),
    "a cancel by the session is ignored by a thread": (
        "thread",
        DirectConversation,
        "perform",
        "self.break_off(step.error)",
        "pass",
    ),
    "the half-close overtakes messages": (
        "reactor, async",
        LoopInput,
        "__anext__",
        "item = stream.take()\n    while",
        "item = None if stream.is_ended else stream.take()\n    while",
    ),
    "the half-close overtakes messages of a thread": (
        "thread",
        Single,
        "pull",
        "if stream.queue:\n        return stream.take()\n    if self",
        "if self",
    ),
    "a wrong status is told": ("reactor, async", Reactor, "gone", "if late else", "if False else"),
    "a failure is told as a success": (
        "thread",
        DirectConversation,
        "finish",
        "Finished(invocation.key, error)",
        "Finished(invocation.key)",
    ),
    "a wrong frame of an invocation is ignored": (
        "reactor, async",
        Reactor,
        "_feed",
        "self._finish(runner, error)",
        "pass",
    ),
}
"""Which driver is broken, the class and its method, and the text that becomes another."""

SHOWN_BY = {"a wrong payload is swallowed": ["swallows"]}
"""Functions by which alone a fault shows."""

FEW = settings(EXAMPLES, max_examples=400, phases=[Phase.generate])


def plant(monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, old: str, new: str) -> None:
    """Change a method for this test."""
    source = textwrap.dedent(inspect.getsource(vars(owner)[method]))
    assert old in source, f"{owner.__name__}.{method} does not say {old!r} any more, so plant the fault anew"
    made: dict[str, Any] = {}
    exec(compile(source.replace(old, new), f"<{method}>", "exec"), vars(sys.modules[owner.__module__]), made)
    monkeypatch.setattr(owner, method, made[method])


@pytest.mark.timeout(30)
@pytest.mark.leaks_threads
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(monkeypatch, fault):
    """By a peer that hears something else, or nothing more."""
    kind, *change = FAULTS[fault]
    for where in ("tests.reference.players.WAIT_S", "tests.execution.wires.LIMIT_S"):
        monkeypatch.setattr(where, 1.0)
    monkeypatch.setattr("invoker.protocols.riff.session._PATIENCE_S", 0.01)
    plant(monkeypatch, *change)

    @FEW
    @given(st.data())
    def run(data):
        name = data.draw(st.sampled_from(SHOWN_BY.get(fault, NAMES)))
        talk = data.draw(data.draw(st.sampled_from([steps, riff]))(PLAYERS[kind][1], name))
        compare(kind, name, talk, data.draw(scripts(talk, kind)))

    try:
        with pytest.raises((AssertionError, TimeoutError)):
            run()
    finally:
        engine_of.cache_clear()  # what a fault has left there is nothing to others
