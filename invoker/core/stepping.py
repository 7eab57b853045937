"""`StepSession`: a conversation inside the process, whose frames are steps already, and whose answers are events.

A caller within the process (another function, an agent) speaks no protocol: it gives the commands
of one invocation, and takes what the invocation emits.
"""

from __future__ import annotations

from collections.abc import Sequence

from invoker.core.steps import CallStep, Close, Emitted, Event, Finished, Send


class StepSession:
    """Runs one invocation: each frame is a sequence of `CallStep`, and each `Send` carries an `Emitted`."""

    def receive(self, frame: Sequence[CallStep]) -> Sequence[CallStep]:
        """Return the frame, which is a list of steps already."""
        return frame

    def half_close(self) -> Sequence[CallStep]:
        """Do nothing: the caller ends the inputs by `EndInput`."""
        return ()

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Send the emitted messages, and close with the ending of the invocation."""
        if type(event) is Emitted:
            return (Send(event),)
        return (Close(event.error),) if isinstance(event, Finished) else ()
