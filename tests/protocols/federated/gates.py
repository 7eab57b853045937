"""A gate with a clock, for tests of room for reports."""

from __future__ import annotations

from invoker.core.budget import ProcessBudget
from invoker.core.timers import Timers
from invoker.errors import InvocationError, Status
from invoker.protocols.federated.gate import SMALL_BYTES, Gate

BIG = SMALL_BYTES + 1


STEP = SMALL_BYTES


HUGE = 60 * 2**20


class Served:
    """A gate with a clock; writes down what it says. The owner of a key is its first letter, if that is upper case."""

    def __init__(self, most: int, memory: ProcessBudget | None = None) -> None:
        self.time = 0.0
        self.resumed: list[str] = []
        self.out: list[str] = []
        self.why: list[Status] = []
        self.timers = Timers(lambda: self.time, lambda _: None)
        self.gate: Gate[str] = Gate(
            most,
            self.timers,
            owner=lambda key: key[0] if key[0].isupper() else "",
            resume=self.resumed.append,
            put_out=self._put_out,
            memory=memory,
        )
        self.ask, self.leave, self.keep = self.gate.ask, self.gate.leave, self.gate.keep

    def _put_out(self, key: str, error: InvocationError) -> None:
        self.out.append(key)
        self.why.append(error.status)

    def whole(self, key: str, size: int) -> bool:
        """Ask for all of a message at once."""
        return self.ask(key, size, size)

    def come(self, key: str, size: int, start: int = 0) -> int:
        """A message comes step by step, as far as it may; gives how far that is."""
        for upto in range(min(start + STEP, size), size + STEP, STEP):
            if not self.ask(key, size, min(upto, size)):
                return upto - STEP
        return size

    def passes(self, seconds: float) -> None:
        self.time += seconds
        self.timers.run()


def full(most: int = 2 * BIG) -> Served:
    """A gate whose room is taken by complete reports, so that nobody may finish."""
    served = Served(most)
    served.keep("kept", most - BIG)
    assert served.whole("one", BIG)
    served.keep("one", BIG)
    return served
