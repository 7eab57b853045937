"""A conversation inside the process passes steps and events on."""

from __future__ import annotations

from invoker.core.stepping import StepSession
from invoker.core.steps import Close, Emitted, EndInput, Finished, Open, OutputEnded, Send
from invoker.errors import Cancelled
from invoker.message import Message


def test_steps_and_events_pass() -> None:
    """Frames are steps, values are sent as they are, and the ending closes the conversation with its error."""
    session = StepSession()
    steps = (Open("n", "f"), EndInput("n"))
    assert session.receive(steps) == steps
    assert list(session.half_close()) == []
    emitted = Emitted("n", 0, Message(b"5"))
    assert list(session.deliver(emitted)) == [Send(emitted)]
    assert list(session.deliver(OutputEnded("n", 0))) == []
    error = Cancelled("gone")
    assert list(session.deliver(Finished("n", error))) == [Close(error)]
