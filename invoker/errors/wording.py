"""The parts of error texts: `Place`, `Why`, `Fault`, and functions that quote names and exceptions."""

from __future__ import annotations

import re
import traceback
import unicodedata
from collections.abc import Awaitable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

LONGEST = 4096
"""The most characters of a foreign text in an error, or in one piece of a traceback."""

_SHOWN = 64

_LISTED = 32
"""The most existing names that a fault lists."""

_NAME = 256
"""The most characters of the name that a fault has as its place."""

_COMPARED = 256
"""The most characters of a name for which a similar name is searched."""

_LONGEST_TRACEBACK = 16 * LONGEST
_SHOWN_OF_GROUP = 4

_STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an error in an invocation. Two places are equal if their kinds and their indexes are.

    Attributes:
        kind: ``input`` or ``output``; for a value that is neither, a word for it.
        index: The index of the input or output; None for any other value.
        name: The function's name for it; empty if the text does not contain the name.
        within: The part of the input or output that is wrong, as the text names it.
    """

    kind: str
    index: int | None = None
    name: str = field(default="", compare=False)
    within: str = field(default="", compare=False)

    def __str__(self) -> str:
        number = "" if self.index is None else f" #{self.index}"
        name = f" '{self.name}'" if self.name else ""
        return f"{self.kind}{number}{name}{self.within}"


@dataclass(frozen=True, slots=True)
class Why:
    """The reason of a failure, which is the end of an error text.

    Attributes:
        text: The text in words.
        raised: The type of the author's exception that gave the text; empty if the text is the invoker's own.
    """

    text: str
    raised: str = ""


class Fault(NamedTuple):
    """One mistake in the values that a caller gives.

    Attributes:
        code: ``missing_arg``, ``unknown_arg``, ``duplicate_arg`` or ``too_many_args``.
        name: The name of the input, or the name that the caller gave; empty if there is none.
        function: The name of the function.
        words: The description of the mistake, which follows the name of the function in the text.
        details: Further facts by name, such as ``expected`` and ``actual``.
    """

    code: str
    name: str
    function: str
    words: str
    details: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"'{self.function}' {self.words}"

    def said_of(self, caller: str) -> str:
        """The same sentence about something other than the function, such as an action that has an id."""
        return f"{caller} {self.words}"


def draining(what: str) -> str:
    """The error text for new ``sessions`` or ``invocations`` in a process that drains."""
    return f"this invoker is draining and takes no new {what}"


def missing(function: str, name: str) -> Fault:
    """The fault of an input that is not given and has no default."""
    return Fault("missing_arg", name, function, f"needs its input '{name}', which is not given")


def twice(function: str, name: str) -> Fault:
    """The fault of an input that takes one value and is given several."""
    return Fault("duplicate_arg", name, function, f"is given its input {quoted(name)} twice")


def unknown(function: str, name: str, known: Sequence[str], *, meant: str = "") -> Fault:
    """The fault of a name that is not the name of an input.

    Args:
        function: The name of the function.
        name: The name that the caller gave.
        known: The names of all inputs.
        meant: The name that was probably meant; if it is empty, the text lists all names.
    """
    listed = ", ".join([*known[:_LISTED], *(["..."] if len(known) > _LISTED else [])])
    hint = f"did you mean '{meant}'?" if meant else f"it has {listed or 'none'}"
    return Fault("unknown_arg", name[:_NAME], function, f"has no input {quoted(name)}; {hint}")


def too_late(function: str) -> str:
    """The text for an option whose value came after the function had begun; it follows the option's place."""
    return f"is an option of '{function}', and its value came too late"


def suggestion(name: str, known: Collection[str], otherwise: str = "") -> str:
    """A text that suggests the most similar known name; ``otherwise``, or a list of all, if none is similar."""
    near = nearest(name, known)
    return f"did you mean {quoted(near)}?" if near else otherwise or f"there are {', '.join(known) or 'none'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant; empty if none is similar, or the name is too long to compare it."""
    from difflib import get_close_matches  # only errors need it

    return next(iter(get_close_matches(name, known, n=1)), "") if len(name) <= _COMPARED else ""


def printable(text: str) -> str:
    """The text with control characters escaped, so that it stays one line and cannot control a terminal."""
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])


def shown(text: str) -> str:
    """A text of several lines for a terminal, with control characters escaped, except line ends and tabs."""
    return _STEERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def quoted(text: str) -> str:
    """Quote an id or a name that a peer chose, for the text of an error: escaped, and cut after 64 characters."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def normalised(name: str) -> str:
    """Normalise a name as Python does in source code: by NFKC, which makes a Greek letter of a micro sign."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def known_as(name: str, known: Container[str]) -> str:
    """The known name that equals the normalised form of ``name``; ``name`` itself if there is none."""
    if name.isascii() or name in known or (plain := normalised(name)) not in known:
        return name
    return plain


def spelt(name: str, known: Container[str]) -> str:
    """Find a name as `known_as` does.

    The written name may be percent-encoded, as names in headers are if they are not ASCII.
    """
    return known_as(unquote(name) if "%" in name and name not in known else name, known)


def clipped(text: str, longest: int = LONGEST) -> str:
    """A text, or its beginning and the number of characters that are left out.

    Callers may influence the length of an exception's text.
    """
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} more characters)"


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception as Python formats it; long texts are cut out before they take time.

    The exceptions of a group follow below it.
    """
    pieces, size = list[str](), 0
    told = traceback.TracebackException.from_exception(error, compact=True, max_group_width=0)
    for piece in told.format():
        pieces.append(piece if len(piece) <= LONGEST else clipped(piece) + "\n")
        size += len(pieces[-1])
        if size > _LONGEST_TRACEBACK:
            pieces.append("... (the rest is left out)\n")
            return "".join(pieces)
    if isinstance(error, BaseExceptionGroup):
        pieces += [
            f"---- {number}:\n{traceback_of(one)}" for number, one in enumerate(error.exceptions[:_SHOWN_OF_GROUP], 1)
        ]
    return "".join(pieces)


def describe(error: BaseException) -> str:
    """Describe an exception of user code for the peer: with its type and text, without traceback and paths (R-117)."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        text = "(its __str__ raised)"
    name = type(error).__name__
    return f"{name}: {clipped(text)}" if text else name


def cannot_wait(awaitable: Awaitable[Any], *, is_over: bool = True) -> TypeError:
    """The error for a sync function that returned an awaitable which cannot be awaited."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()  # otherwise Python warns later that this coroutine was never awaited
    advice = " any more" if is_over else "; write `async def`"
    return TypeError(f"a sync function returned an awaitable, and nothing here can await it{advice}")
