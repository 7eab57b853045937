"""What a peer may hear of a real driver: what it hears of the reference by some schedule.

Where nothing goes wrong, and where it only cancels after a cut, all schedules give the same. So these differences are
allowed, and no others:

* **The order between values of two iterators.** Each output has its own order. One iterator that gives to several
  outputs has one order for all of them.
* **What comes from outside to end a function that goes on**: a wrong frame, a cancel, a deadline, or an output beside
  it that fails. The function may have given any number of the values that it would have given since the last cut, and
  nothing else; each of several outputs has between the fewest and the most that it gives by any schedule. If the
  function would have come to an end of its own before, that ending or the one from outside counts.

* **A peer that is gone** may not hear the last frames, nor the trailers, and what it sent since its last cut may not be
  read. What it was sent before its last cut, it has heard.

Status, text and trailers of the ending are those of the same schedule, and so is what answers as a whole: the head of a
response, the end of a stream.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from invoker.core.engine import Engine
from invoker.core.steps import Close
from tests.reference.driver import CANCEL, CUT, DEADLINE, Heard, Reference
from tests.reference.talk import Item, Talk

Read = tuple[tuple[Any, ...], list[Item]]
"""An ending, and what was read before it."""


def _ending(close: Close | None, *, has_trailers: bool) -> tuple[Any, ...]:
    """A close as the peer gets it."""
    assert close is not None
    error = close.error
    told = ("OK", "") if error is None else (error.status.name, str(error))
    return (*told, tuple(close.trailers) if has_trailers else ())


class References:
    """What may be heard of one talk.

    Args:
        talk: What the peer means.
        script: What it does.
        engine: For the reference alone.
        is_ordered: Whether the function gives one iterator.
        is_storing: As `Reference`.
        has_trailers: Whether the driver has a place for trailers.

    Attributes:
        script: Without the cuts at which schedules differ.
        usual: What is heard where bodies run before each frame.
    """

    def __init__(
        self,
        talk: Talk,
        script: Sequence[Any],
        engine: Engine,
        *,
        is_ordered: bool,
        is_storing: bool = False,
        has_trailers: bool = True,
    ) -> None:
        self._talk, self.script, self._engine = talk, list(script), engine
        self._is_ordered, self._is_storing, self._has_trailers = is_ordered, is_storing, has_trailers
        while (unsure := self._unsure_cut()) is not None:
            del self.script[unsure]
        self.usual = self._heard(None)

    def _unsure_cut(self) -> int | None:
        """Where the script has a cut at which schedules differ, so that no peer could know when all is quiet."""
        schedules = ((None, False), (None, True), (0, False), (0, True))
        seen = [self._heard(most, is_reversed=is_reversed).cuts for most, is_reversed in schedules]
        cuts = [at for at, what in enumerate(self.script) if what is CUT]
        return next((cuts[number] for number, some in enumerate(zip(*seen, strict=True)) if len({*some}) > 1), None)

    def check(self, heard: Heard) -> None:
        """Fail unless some schedule gives this."""
        real = self._read(heard)
        tried: list[Read] = []
        for one in self._schedules():
            if one == real:
                return
            if one not in tried:
                tried.append(one)
        same = [one for one in tried if one[0] == real[0]]
        if self._is_gone and any(_begins(one[1], real[1]) for one in same):
            return
        if not self._is_ordered and (self._is_gone or any(_fences(one) == _fences(real) for one in same)):
            keys = {key for one in (*same, real) for key, _ in one[1]} - {None}
            if same and all(self._is_between(real, key, same, tried) for key in keys):
                return
        listed = "\n".join(f"  {one}" for one in tried)
        raise AssertionError(f"script: {self.script}\nheard: {real}\nthe reference gives one of:\n{listed}")

    def _is_between(self, real: Read, key: Hashable, same: Sequence[Read], tried: Sequence[Read]) -> bool:
        """Whether an output gave what it gives by some schedule with the same ending at least, and no more than by any.

        All outputs may have ended already when the ending comes from outside.
        """
        least = 0 if self._is_gone else min(len(_of(one, key)) for one in same)
        given = _of(real, key)
        return len(given) >= least and any(_begins(_of(one, key), given) for one in tried)

    @property
    def _is_gone(self) -> bool:
        return self.script[-1] in (CANCEL, DEADLINE)

    def _schedules(self) -> Iterator[Read]:
        yield self._read(self.usual)
        script = self.script
        yield from self._schedules_of(script)
        for end in range(len(script) - 1, 0, -1) if self._is_gone else ():
            if script[end - 1] is CUT:
                break
            yield from self._schedules_of([*script[: end - 1], script[-1]])

    def _schedules_of(self, script: Sequence[Any]) -> Iterator[Read]:
        orders = (False,) if self._is_ordered else (False, True)
        last = [self._heard(None, script, is_reversed=one) for one in orders]
        yield from map(self._read, last)
        for most in range(max(one.values for one in last) + 1):
            for is_reversed in orders:
                yield self._read(self._heard(most, script, is_reversed=is_reversed))

    def _heard(self, most: int | None, script: Sequence[Any] | None = None, *, is_reversed: bool = False) -> Heard:
        made = Reference(
            self._talk.session(), self._engine, most=most, is_reversed=is_reversed, is_storing=self._is_storing
        )
        return made.run(self.script if script is None else script)

    def _read(self, heard: Heard) -> Read:
        return _ending(heard.close, has_trailers=self._has_trailers and not self._is_gone), self._talk.read(
            heard.frames
        )


def _begins(items: list[Item], part: list[Item]) -> bool:
    return items[: len(part)] == part


def _of(read: Read, key: Hashable) -> list[Item]:
    return [one for one in read[1] if one[0] == key]


def _fences(read: Read) -> tuple[list[Item], bool, bool]:
    """What is of the whole answer, and whether it stands first and last."""
    items = read[1]
    return _of(read, None), bool(items) and items[0][0] is None, bool(items) and items[-1][0] is None
