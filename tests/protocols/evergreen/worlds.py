"""Random sessions, what they must come to by a naive model, and the least that can run them.

A *world* is a list of things, each made of earlier ones: leaves, interior nodes, and outputs of actions. `flatten` says
what a thing stands for, recursively and without any wire. `pieces` cuts a world into fragments and actions, in an order
that a client may send as well as any other; `Run` sends them through the pure session, with functions that give what
they get.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.core.steps import Cancel, Close, Emitted, EndInput, Event, Feed, Finished, Open, Send, Step, Wants
from invoker.errors import InvocationError
from invoker.message import Message
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.protocols.evergreen.notation import JSON, OCTETS, TEXT, A, Sent

Content = list[tuple[str, bytes]]
"""Leaves: media type and bytes."""

_BOM = b"\xef\xbb\xbf"


# The functions. What they give depends on nothing but what they get, in whatever pieces.


def leaves(x: Iterator[Message[bytes]]) -> Iterator[dict[str, Any]]: ...
def text(x: Iterator[str]) -> Iterator[str]: ...
def blob(x: Iterator[bytes]) -> Iterator[bytes]: ...
def both(x: Iterator[Message[bytes]], y: Iterator[Message[bytes]]) -> Iterator[dict[str, Any]]: ...
def mapped(x: Any) -> dict[str, Any]: ...


SPECS: dict[str, FunctionSpec] = {one.__name__: read(one) for one in (leaves, text, blob, both, mapped)}
SINGLE = ("leaves", "text", "blob", "mapped")


def told(message: Message[bytes]) -> Message[bytes]:
    """A leaf as a value, its metadata included."""
    value = [message.media_type or OCTETS, message.payload.hex(), dict(message.headers)]
    return Message(json.dumps(value).encode(), media_type=JSON)


def echo(function: str, message: Message[bytes]) -> Message[bytes]:
    """What a function of one input gives for one message."""
    if function == "text":  # as a decoder does: a mark of the byte order is no text
        return Message(message.payload.removeprefix(_BOM), media_type=TEXT)
    if function == "blob":
        return Message(message.payload, media_type=OCTETS)
    return told(message)


# Worlds.


@dataclass(frozen=True, slots=True)
class Leaf:
    """Pieces of bytes."""

    media_type: str
    pieces: tuple[bytes, ...]
    role: str = ""
    ends_apart: bool = False

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Interior:
    """Children by number, a tuple of them for each fragment."""

    parts: tuple[tuple[int, ...], ...]
    ends_apart: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """An action; as a thing it is its output."""

    function: str
    inputs: tuple[int, ...]


Thing = Leaf | Interior | Act
World = Sequence[Thing]


def flatten(world: World, number: int) -> list[Message[bytes]]:
    """What a thing stands for, by the words of the specification: depth first, left to right."""
    thing = world[number]
    if isinstance(thing, Leaf):
        headers = {"role": thing.role} if thing.role else {}
        return [Message(thing.data, headers, thing.media_type or OCTETS)]
    if isinstance(thing, Interior):
        return [leaf for part in thing.parts for child in part for leaf in flatten(world, child)]
    found = [leaf for one in thing.inputs for leaf in flatten(world, one)]
    given = [echo(thing.function, leaf) for leaf in found]
    if thing.function in ("text", "blob"):
        return [Message(b"".join(one.payload for one in given), {}, given[0].media_type)] if given else []
    return given


def expected(world: World) -> dict[int, Content]:
    """What the client shall get: the leaves of each action's output."""
    return {
        number: [(leaf.media_type, leaf.payload) for leaf in flatten(world, number)]
        for number, thing in enumerate(world)
        if isinstance(thing, Act)
    }


def plain_id(number: int) -> str:
    return f"n{number}"


Piece = pb.NodeFragment | pb.Action


def pieces(world: World, name: Callable[[int], str] = plain_id) -> list[Piece]:
    """All that a client sends for a world."""
    found: list[Piece] = []
    for number, thing in enumerate(world):
        if isinstance(thing, Act):
            inputs = dict(zip("xy", map(name, thing.inputs), strict=False))
            found.append(A(thing.function, inputs, {"out": name(number)}))
        else:
            found += fragments(name(number), thing, name)
    return found


def fragments(id: str, thing: Leaf | Interior, name: Callable[[int], str]) -> list[pb.NodeFragment]:
    made = []
    for seq, part in enumerate(thing.pieces if isinstance(thing, Leaf) else thing.parts):
        one = pb.NodeFragment(id=id, seq=seq, continued=True)
        if isinstance(thing, Leaf):
            one.chunk_fragment.data = part
            if seq == 0:
                one.chunk_fragment.metadata.mimetype = thing.media_type
                one.chunk_fragment.metadata.role = thing.role
        else:
            one.child_ids.extend(map(name, part))
        made.append(one)
    if thing.ends_apart or not made:
        made.append(pb.NodeFragment(id=id, seq=len(made)))
    made[-1].continued = False
    return made


# Strategies. Each is made once for its arguments: Hypothesis looks into a new one before it draws, which takes longer.

integers = functools.cache(st.integers)
booleans = st.booleans()
media_types = st.sampled_from([TEXT, JSON, OCTETS, "text/markdown", "image/png", "text/plain; charset=utf-16", ""])
texts = st.text(alphabet=st.sampled_from('aé日𝄞\ufeff"\\{'), max_size=6).map(str.encode)
contents = texts | st.binary(max_size=6)


@functools.cache
def _cuts(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(integers(0, size), max_size=4)


roles = st.sampled_from(["", "user"])


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> tuple[bytes, ...]:
    """Bytes in pieces, some of them empty; at least one."""
    places = sorted(draw(_cuts(len(data))))
    ends = [0, *places, len(data)]
    return tuple(data[start:end] for start, end in pairwise(ends))


@functools.cache
@st.composite
def a_leaf(draw: st.DrawFn) -> Leaf:
    data = draw(contents)
    return Leaf(draw(media_types), draw(cut(data)), draw(roles), draw(booleans))


kinds = st.sampled_from(["leaf", "interior", "interior", "act"])


@functools.cache
def _parts(number: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Of an interior node that is made of the things before this number."""
    return st.lists(st.lists(integers(0, number - 1), min_size=1, max_size=3).map(tuple), max_size=3)


@st.composite
def worlds(draw: st.DrawFn, most: int = 9, functions: tuple[str, ...] = (*SINGLE, "both")) -> World:
    """Things that are made of earlier ones, often of the same; with an action at the end that reads the last node."""
    made: list[Thing] = []
    sizes: list[int] = []  # leaves below, so that shared nodes do not explode
    for number in range(draw(integers(1, most))):
        kind = draw(kinds) if number else "leaf"
        if kind == "leaf":
            thing: Thing = draw(a_leaf())
            below = 1
        elif kind == "interior":
            parts = draw(_parts(number))
            thing = Interior(tuple(parts), draw(booleans))
            below = sum(sizes[child] for part in parts for child in part)
        else:
            thing = draw(acts(0, number - 1, functions))
            below = sum(sizes[one] for one in thing.inputs)
        if below > 60:
            thing, below = Interior(()), 0
        made.append(thing)
        sizes.append(below)
    return [*made, draw(acts(len(made) - 1, len(made) - 1, functions))]


@functools.cache
@st.composite
def acts(draw: st.DrawFn, first: int, last: int, functions: tuple[str, ...]) -> Act:
    function = draw(_functions(functions))
    count = 2 if function == "both" else 1
    return Act(function, tuple(draw(integers(first, last)) for _ in range(count)))


@functools.cache
def _functions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.sampled_from(names)


@st.composite
def deliveries(draw: st.DrawFn, world: World) -> list[bytes]:
    """The pieces of a world in any order and grouping, some of them more than once; actions come once (E-084)."""
    sent = pieces(world)
    again = [one for one in sent if isinstance(one, pb.NodeFragment)]
    if again:
        sent += draw(st.lists(st.sampled_from(again), max_size=6))
    order = draw(st.permutations(sent))
    frames, group = [], pb.SessionMessage()
    for one in order:
        (group.actions if isinstance(one, pb.Action) else group.node_fragments).append(one)  # type: ignore[arg-type]
        if draw(booleans):
            frames.append(group.SerializeToString())
            group = pb.SessionMessage()
    return [*frames, group.SerializeToString()]


def ordered(world: World, name: Callable[[int], str] = plain_id) -> list[bytes]:
    """One piece a message, as they stand."""
    return [message_of([one]) for one in pieces(world, name)]


def message_of(some: Iterable[Piece]) -> bytes:
    made = pb.SessionMessage()
    for one in some:
        (made.actions if isinstance(one, pb.Action) else made.node_fragments).append(one)  # type: ignore[arg-type]
    return made.SerializeToString()


# The least that runs a session.


@dataclass(slots=True)
class Running:
    """An invocation: what it was fed and has not given back."""

    open: Open
    fed: list[list[Message[bytes]]]
    open_inputs: set[int]


@dataclass(slots=True)
class Run:
    """A session, its invocations and what it sent."""

    settings: EvergreenSettings = field(default_factory=EvergreenSettings)
    specs: Mapping[str, FunctionSpec] = field(default_factory=lambda: SPECS)
    session: EvergreenSession = field(init=False)
    sent: Sent = field(default_factory=Sent)
    running: dict[str, Running] = field(default_factory=dict)
    is_closed: bool = False
    error: InvocationError | None = None
    waits: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.session = EvergreenSession(self.specs.values(), settings=self.settings)

    def receive(self, frame: bytes) -> None:
        self._do(self.session.receive(frame))

    def half_close(self) -> None:
        self._do(self.session.half_close())

    def run(self, frames: Iterable[bytes]) -> Run:
        """Send all and half-close; stops when the session is over."""
        for frame in frames:
            self.receive(frame)
            if self.is_closed:
                return self
        self.half_close()
        return self

    def _do(self, steps: Sequence[Step]) -> None:
        events = self._events(steps)
        while events or self._asks(events):
            batch, events = events, []
            for event in batch:
                events += self._events(self.session.deliver(event))

    def _asks(self, events: list[Event]) -> bool:
        """Functions here are never behind, and wait for each input that is open; each wait is told once."""
        events += [Wants(key, index) for key, index in sorted(self.session.stalled)]
        if not events and self.session.is_half_closed:
            waits = {(key, index) for key, one in self.running.items() for index in one.open_inputs} - self.waits
            events += [Wants(key, index, waits=True) for key, index in sorted(waits)]
            self.waits |= waits
        return bool(events)

    def _events(self, steps: Sequence[Step]) -> list[Event]:
        events: list[Event] = []
        for step in steps:
            assert not self.is_closed, f"{step} after the end"
            if isinstance(step, Open):
                assert step.bound is not None
                count = len(step.bound)
                self.running[step.id] = Running(step, [[] for _ in range(count)], set(range(count)))
            elif isinstance(step, Feed):
                self._feed(step, events)
            elif isinstance(step, EndInput):
                self._end(step, events)
            elif isinstance(step, Cancel):
                if self.running.pop(step.id, None) is not None:
                    events.append(Finished(step.id, step.error))
            elif isinstance(step, Send):
                self.sent.take(step.frame)
            elif isinstance(step, Close):
                self.is_closed, self.error = True, step.error
            else:
                raise AssertionError(f"{step} was not expected")
        return events

    def _feed(self, step: Feed, events: list[Event]) -> None:
        self.waits.discard((step.id, step.index))
        one = self.running.get(step.id)
        if one is None:
            return
        assert step.index in one.open_inputs, f"{step} after the end of the input"
        if one.open.function == "both":
            one.fed[step.index].append(step.message)
        else:
            events.append(Emitted(step.id, 0, echo(one.open.function, step.message)))

    def _end(self, step: EndInput, events: list[Event]) -> None:
        one = self.running.get(step.id)
        if one is None:
            return
        one.open_inputs.remove(step.index)
        if not one.open_inputs:
            del self.running[step.id]
            events += [Emitted(step.id, 0, told(message)) for fed in one.fed for message in fed]
            events.append(Finished(step.id))


def outcome(run: Run, world: World, name: Callable[[int], str] = plain_id) -> dict[int, Content] | str:
    """What the client got, by the number of the thing; or the text of the error."""
    if run.error is not None:
        return str(run.error)
    assert run.is_closed
    return {
        number: [(leaf.media_type, leaf.data) for leaf in run.sent.flatten(name(number))]
        for number, thing in enumerate(world)
        if isinstance(thing, Act)
    }
