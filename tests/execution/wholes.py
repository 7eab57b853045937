"""A transport in memory for whole conversations, and one call of a function over it in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.steps import Close
from invoker.errors import Cancelled, InvocationError
from invoker.execution.driver import Driver
from invoker.execution.placement import Run
from invoker.execution.whole import Whole
from invoker.protocols.riff.session import RiffSession

LIMIT_S = 5.0


class MemoryOutlet:
    """What a transport is to a whole conversation.

    Attributes:
        left: Frames that left while the function was running.
        told: How the conversation ended, if that left early, too.
        has_room: Cleared while the peer reads nothing.
        asked_end: How often it was asked whether the frames have ended.
    """

    def __init__(self, settle_s: float = 0.0) -> None:
        self.settle_s = settle_s
        self.left: list[bytes] = []
        self.told: list[Close] = []
        self.cuts: list[InvocationError] = []
        self.gone = False
        self.has_room = threading.Event()
        self.has_room.set()
        self.arrived = threading.Condition()
        self.asked_end = 0
        self.on_end: Callable[[], None] = lambda: None

    def await_end(self) -> None:
        self.asked_end += 1
        self.on_end()
        if self.gone:
            raise Cancelled("the peer cancelled, or is gone")

    def is_gone(self) -> bool:
        return self.gone

    def early(self, frames: list[bytes], close: Close | None = None, *, may_wait: bool = False) -> None:
        while frames:
            if may_wait:
                assert self.has_room.wait(LIMIT_S)
                if self.gone:
                    raise Cancelled("the peer cancelled, or is gone")
            elif not self.has_room.is_set():
                return
            with self.arrived:
                assert not self.told, "a frame behind the ending"
                self.left.append(frames.pop(0))
                self.arrived.notify_all()
        if close is not None and not self.told:
            with self.arrived:
                self.told.append(close)
                self.arrived.notify_all()

    def cut(self, error: InvocationError) -> None:
        self.cuts.append(error)
        self.gone = True


class ByHand:
    """The turn of a leading thread; tests say when a beat is over."""

    run = Run.THREAD

    def __init__(self) -> None:
        self.busy: Any = None
        self.begun = threading.Event()
        self.passed = 0

    def begin(self, busy: Any) -> None:
        self.busy = busy
        self.begun.set()

    def end(self) -> None:
        self.busy = None

    def pass_on(self) -> None:
        self.passed += 1


class WholeCall:
    """One conversation: what the caller sends is collected first, `run` begins it.

    Attributes:
        close: How it ended.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        deadline: float | None = None,
        settle_s: float = 0.0,
        has_turn: bool = True,
        session: Any = None,
        **more: Any,
    ) -> None:
        self.driver = driver
        self.outlet = MemoryOutlet(settle_s)
        self.turn = ByHand()
        self.close = Close()
        self.whole: Whole
        self._frames: list[bytes] = []
        self._ended = threading.Event()
        turn: Any = self.turn if has_turn else None
        self._make = lambda: Whole(session or RiffSession(), driver, self.outlet, turn=turn, deadline=deadline, **more)

    def start(self, *types: str) -> WholeCall:
        frame = pb.StartFrame(expectedContentTypes=types or ("application/json",))
        return self.raw(pb.InputSignal(start=frame).SerializeToString())

    def data(self, payload: bytes, index: int = 0) -> WholeCall:
        frame = pb.InputFrame(payload=payload, contentType="application/json", argIndex=index)
        return self.raw(pb.InputSignal(data=frame).SerializeToString())

    def raw(self, frame: bytes) -> WholeCall:
        self._frames.append(frame)
        return self

    def run(self) -> WholeCall:
        """Begin it in a thread of its own."""
        made = threading.Event()
        threading.Thread(target=self.run_here, args=(made,), name="invoker-whole", daemon=True).start()
        assert made.wait(LIMIT_S)
        return self

    def run_here(self, made: threading.Event | None = None) -> None:
        """Run it in this thread."""
        self.whole = self._make()
        if made is not None:
            made.set()
        self.close = self.whole.run(self._frames)
        self._ended.set()

    def end(self) -> InvocationError | None:
        """How the conversation ended; nothing is left of it then."""
        if not hasattr(self, "whole"):
            self.run()
        assert self._ended.wait(LIMIT_S), "the conversation has not ended"
        assert not self.driver.engine.running
        assert not self.driver.direct
        assert self.driver.engine.memory.held == 0
        return self.close.error

    def payloads(self, index: int | None = None) -> list[bytes]:
        """What all outputs, or one of them, have got in the end."""
        return _payloads([*self.outlet.left, *self.whole.sent], index)

    def early(self, count: int) -> list[bytes]:
        """The payloads that left while the function was running, once there are so many."""
        with self.outlet.arrived:
            assert self.outlet.arrived.wait_for(lambda: len(self.outlet.left) >= count, LIMIT_S)
        return _payloads(self.outlet.left)

    def await_told(self) -> Close:
        """The ending, once it has left early."""
        with self.outlet.arrived:
            assert self.outlet.arrived.wait_for(lambda: self.outlet.told, LIMIT_S)
        return self.outlet.told[0]


def _payloads(frames: list[bytes], index: int | None = None) -> list[bytes]:
    got = [pb.OutputSignal.FromString(frame).data for frame in frames]
    return [one.payload for one in got if index is None or one.resultIndex == index]
