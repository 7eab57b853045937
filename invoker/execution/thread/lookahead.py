"""`LookaheadValidator`: finds protocol violations among the frames that wait while the function does not pull."""

from __future__ import annotations

import copy
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.session import CallSession
from invoker.core.steps import Feed
from invoker.errors import InvocationError
from invoker.execution.thread.wire import Wire


class LookaheadValidator:
    """Looks ahead in one direct conversation, for the sweeper.

    The frames stay where they are, since the session and the invocation belong to the thread that runs the function. A
        copy of the session judges each frame once, and only frames that had already come at the last look: a function
        that pulls judges its frames itself.
    """

    __slots__ = ("_count", "_oldest", "_wrong")

    def __init__(self) -> None:
        self._oldest: Any = None
        self._count = 0
        self._wrong: InvocationError | None = None

    def look(self, wire: Wire, session: CallSession, invocation: Invocation) -> InvocationError | None:
        """Find the error of the first invalid waiting frame; None if all are valid."""
        frames = wire.look_ahead()
        if not frames or frames[0] is not self._oldest:
            self._oldest, self._count, self._wrong = frames[0] if frames else None, 0, None
            return None
        fresh, self._count = frames[self._count :], len(frames)
        judge = copy.copy(session)
        try:
            for frame in fresh:
                for step in judge.receive(frame):
                    if type(step) is Feed:
                        invocation.check_index(step.index)
        except InvocationError as error:
            self._wrong = error
        return self._wrong
