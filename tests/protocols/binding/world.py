"""Functions in one engine, and what a caller gives them; the wires of `tests.protocols.binding.wires` play it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from invoker.author.lift import Function
from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.steps import Close, Emitted, EndInput, Feed, Finished, Open, Send
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.toolbridge.tools import Tool
from invoker.protocols.typed.codec import Book, FieldCodec
from invoker.protocols.web.fields import signature_of
from invoker.protocols.web.socket import shape_of
from tests.reference.driver import HALF_CLOSE, Heard, Reference

CALL = "the-call"


class Refused(Exception):
    """The call was refused; the text is the sentence without the wire's prefix."""


class CannotSay(Exception):
    """A peer of this wire cannot write the call; the text is the reason."""


@dataclass(frozen=True)
class Given:
    """What a caller gives: values by position, then values by name; a list is a stream of values.

    A name may come twice.
    """

    args: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()

    @property
    def kwargs(self) -> dict[str, Any]:
        """The values by name, for wires on which a name comes once."""
        found = dict(self.named)
        if len(found) < len(self.named):
            raise CannotSay("a map has each name once")
        return found

    @property
    def all_named(self) -> tuple[tuple[str, Any], ...]:
        """The values, for wires on which each has a name."""
        if self.args:
            raise CannotSay("each value has a name")
        return self.named


class World:
    """Functions in one engine, for every wire."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self.functions: dict[str, Function] = {}
        for one in functions:
            made = prepare_function(one).function
            self.functions[made.spec.name] = made
        registry = builtin(arrays=True, entry_points=False)
        registry.register(FieldCodec(Book(lambda: [one.spec for one in self.functions.values()])), first=False)
        self.engine = Engine(Catalog(list(self.functions.values())), registry, new_lock=threading.Lock)
        self.registry = registry
        self.tool = cache(lambda name: Tool(self.functions[name].spec))
        self.model = cache(lambda name: Model(self.functions[name].spec, has_arrays=True))
        self.shape = cache(lambda name: shape_of(self.functions[name].spec, registry))
        self.signature = cache(lambda name: signature_of(self.functions[name].spec, registry))

    def play(self, session: Any, *frames: Any, is_storing: bool = False) -> Heard:
        """Let a peer send frames and end."""
        return Reference(session, self.engine, is_storing=is_storing).run([*frames, HALF_CLOSE])


class Plain:
    """A session of one invocation, whose values are fed as they are."""

    def __init__(self, opening: Open, feeds: Sequence[tuple[int, Any]]) -> None:
        self._steps = [opening, *(Feed(CALL, index, message) for index, message in feeds), EndInput(CALL)]

    def receive(self, _: Any) -> Sequence[Any]:
        return self._steps

    def half_close(self) -> Sequence[Any]:
        return ()

    def deliver(self, event: Any) -> Sequence[Any]:
        if isinstance(event, Emitted):
            return (Send(event.message),)
        return (Close(event.error),) if isinstance(event, Finished) else ()


def only(heard: Heard, prefix: str) -> Any:
    """The only frame; a refusal loses the prefix of its wire."""
    assert heard.close is not None
    if heard.close.error is not None:
        raise Refused(bare(str(heard.close.error), prefix))
    (frame,) = heard.frames
    return frame


def bare(text: str, prefix: str) -> str:
    found = re.match(prefix, text)
    assert found, (text, prefix)
    return text[found.end() :]
