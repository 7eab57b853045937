"""Outputs that take no values. Each replaces an `OutputStream` that was closed or is not wanted.

They refuse a value by raising, so that outputs which are read need no check for them.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from invoker.errors import Discarded, EncodeError, StopInvocation
from invoker.errors.wording import Place


class UnwantedOutput:
    """An output without a reader: its values are dropped before they are checked."""

    __slots__ = ("emitted", "emitted_bytes", "index", "is_ended", "name")

    is_wanted = False

    def __init__(
        self, index: int, name: str, *, emitted: int = 0, emitted_bytes: int = 0, is_ended: bool = False
    ) -> None:
        self.index = index
        self.name = name
        self.emitted = emitted
        self.emitted_bytes = emitted_bytes
        self.is_ended = is_ended

    @classmethod
    def after(cls, output: Any, *, is_ended: bool | None = None) -> Self:
        """An output that replaces another one, with its counts."""
        ended = output.is_ended if is_ended is None else is_ended
        return cls(
            output.index, output.name, emitted=output.emitted, emitted_bytes=output.emitted_bytes, is_ended=ended
        )

    def encode(self, _: Any) -> NoReturn:
        """Refuse one value.

        Raises:
            Discarded: Always; the caller continues with the next value.
        """
        raise Discarded


class MutedOutput(UnwantedOutput):
    """An output that has lost its reader. Its generator continues, since it gives values of other outputs, too."""

    __slots__ = ()


class ClosedOutput(UnwantedOutput):
    """An output that has lost its reader. A generator that gives values for it alone is closed."""

    __slots__ = ()

    def encode(self, _: Any) -> NoReturn:
        """Refuse one value.

        Raises:
            StopInvocation: Always; it closes the generator of this output.
        """
        raise StopInvocation("nobody reads this output any more")


class EndedOutput(UnwantedOutput):
    """An output that the function has ended itself, by its context."""

    __slots__ = ()

    is_wanted = True

    def encode(self, _: Any) -> NoReturn:
        """Refuse one value.

        Raises:
            EncodeError: Always (E-130).
        """
        raise EncodeError(" was given a value after its end", place=Place("output", self.index, self.name))
