"""Reads one annotation: a stream, a value, a whole message, headers, the context, or no annotation.

Nothing here looks at functions; `invoker.author.signature` resolves annotations to objects first.
"""

from __future__ import annotations

import inspect
import typing
from collections import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from invoker.author.spec import CONTEXT, IGNORED, WANTED, ResultShape, Slot, StreamSpec, Take
from invoker.author.spelling import render
from invoker.codecs.annotations import is_array
from invoker.codecs.members import members_of
from invoker.context import Context
from invoker.errors import SpecError
from invoker.fields.aliases import UNIONS, bare, is_typed_dict, stood_for, unaliased
from invoker.fields.constraints import UNBOUND, Constraints, constraints_of
from invoker.fields.marks import unread
from invoker.message import Headers, Message, Output

_SYNC_STREAMS = (abc.Iterator, abc.Iterable, abc.Generator)
_ASYNC_STREAMS = (abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator)
_AWAITABLES = (abc.Awaitable, abc.Coroutine)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_LISTS = (list, tuple, abc.Sequence)
_EMPTY = inspect.Parameter.empty
_WANTED_NAME = "output_names"
_WANTED_KINDS: dict[Any, type] = {tuple[str, ...]: tuple, list[str]: list, abc.Sequence[str]: tuple}
_WANTED_KINDS |= {typing.Tuple[str, ...]: tuple, typing.List[str]: list, typing.Sequence[str]: tuple}  # noqa: UP006


@dataclass(frozen=True, slots=True)
class Reading:
    """The meaning of a parameter's annotation.

    Attributes:
        annotation: The annotation as it was resolved; ``inspect.Parameter.empty`` where there is none.
        type: The type of one item, without Message, Iterator and the like.
        take: The part of each message that the parameter takes.
        stream: ``"sync"`` or ``"async"`` for an iterator, else empty.
        slot: Set if the parameter is not an input: it takes the context, or the names of the wanted outputs.
        constraints: The constraints on values that the annotation contains besides the type.
    """

    annotation: Any
    type: Any = Any
    take: Take = Take.PAYLOAD
    stream: str = ""
    slot: Slot | None = None
    constraints: Constraints = UNBOUND

    @property
    def said(self) -> bool:
        """Whether the parameter has an annotation other than ``Any``."""
        return self.annotation is not _EMPTY and self.annotation is not Any

    @property
    def context(self) -> bool:
        """Whether the parameter takes the invocation's context."""
        return self.slot is not None and self.slot.index == CONTEXT

    @property
    def text(self) -> str:
        """The annotation as an author would write it."""
        return render(self.annotation)


@dataclass(frozen=True, slots=True)
class Returned:
    """The outputs that a return annotation declares.

    Attributes:
        annotation: The annotation as it was resolved.
        result: The shape of the result if the function streams.
        outputs: The names and types of the outputs.
        stream: ``"sync"``, ``"async"`` or ``"mixed"`` if iterators are declared, else empty.
        open: Whether the number of outputs is not fixed.
        awaited: Whether an awaitable is declared, which has to be awaited first.
        parts: The parts of each value, if the values are tuples, NamedTuples or TypedDicts.
        is_unnamed: Whether the parts have no names of their own.
        each: The type of every part if the number of parts is not fixed, as in a dict or a list.
    """

    annotation: Any
    result: ResultShape
    outputs: tuple[StreamSpec, ...] = ()
    stream: str = ""
    open: bool = False
    awaited: bool = False
    parts: tuple[StreamSpec, ...] = ()
    is_unnamed: bool = False
    each: StreamSpec | None = None

    @property
    def holds_arrays(self) -> bool:
        """Whether a part is an array."""
        return any(is_array(one.type) for one in self.parts)

    @property
    def text(self) -> str:
        """The annotation as an author would write it."""
        return render(self.annotation)


def read_annotation(annotation: Any) -> Reading:
    """Classify the annotation of a parameter."""
    bare = _bare(annotation)
    if bare is _EMPTY:
        return Reading(_EMPTY)
    if isinstance(bare, type) and issubclass(bare, Context):
        return Reading(annotation, slot=Slot(CONTEXT))
    stream = _stream(bare)
    if stream:
        _check_around(annotation)
    item, take, said = _value(_raw_item(bare) if stream else annotation)
    return Reading(annotation, type=item, take=take, stream=stream, constraints=said)


def read_parameter(one: inspect.Parameter, inputs: Sequence[str] = ()) -> Reading:
    """Classify a parameter by its annotation, and ``output_names`` by its name, too (G-060).

    ``output_names`` that is a tuple, list or Sequence of str takes the names of the wanted outputs, unless the
    decorator lists it in ``inputs``.

    Raises:
        SpecError: Metadata of ``Annotated`` is misplaced or invalid.
    """
    if type(one.default).__name__ in ("FieldInfo", "Meta"):
        raise SpecError("its default is a Field, which has no effect there; write it within Annotated[...]")
    if one.name == _WANTED_NAME and one.name not in inputs and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
        bare = _bare(one.annotation)
        rest = [arg for arg in typing.get_args(bare) if arg is not type(None)]
        wanted = rest[0] if _origin(bare) in UNIONS and len(rest) == 1 else bare
        kind = next((kind for said, kind in _WANTED_KINDS.items() if said == wanted), None)
        if kind is not None:
            return Reading(one.annotation, slot=Slot(WANTED, kind=kind))
    return read_annotation(one.annotation)


def read_return(annotation: Any) -> Returned:
    """Classify a return annotation.

    Raises:
        TypeError: Iterators and values are mixed in one tuple.
        NameError: A field of a NamedTuple cannot be resolved.
    """
    bare = _bare(annotation)
    if _origin(bare) in _AWAITABLES:
        inner = read_return(typing.get_args(bare)[-1] if typing.get_args(bare) else _EMPTY)
        return replace(inner, annotation=annotation, awaited=True)
    if bare is _EMPTY or bare is Any or bare is object:
        return Returned(annotation, ResultShape.UNKNOWN, open=True, each=StreamSpec("out"))
    if bare in (None, type(None), typing.NoReturn, typing.Never):
        return Returned(annotation, ResultShape.NOTHING)
    if stream := _stream(bare):
        item = _item(bare)
        if _mentions_output(item):
            return Returned(annotation, ResultShape.STREAM, stream=stream, open=True)
        return _with_parts(Returned(annotation, ResultShape.STREAM, (_output("out", _raw_item(bare)),), stream), item)
    if (several := _several(bare)) is not None:
        return _returned_tuple(annotation, several[0], is_open=several[1])
    if _mentions_output(bare):
        return Returned(annotation, ResultShape.VALUE, open=True)
    return _with_parts(Returned(annotation, ResultShape.VALUE, (_output("out", annotation),)), bare)


def _bare(annotation: Any) -> Any:
    """Strip Annotated (except around arrays), aliases, and Optional around a type that is never None."""
    while True:
        annotation = _unnamed(annotation)
        if typing.get_origin(annotation) is typing.Annotated:
            if is_array(annotation.__origin__):
                return _beside_arrays(annotation)
            annotation = annotation.__origin__
        elif isinstance(annotation, typing.TypeVar):
            annotation = stood_for(annotation)
        elif typing.get_origin(annotation) in UNIONS and (inner := _optional(annotation)) is not None:
            annotation = inner
        else:
            return annotation


def _unnamed(annotation: Any) -> Any:
    """The type behind a type alias; a NewType stays, since lists of functions show its name to authors."""
    return annotation if isinstance(annotation, typing.NewType) else unaliased(annotation)


def _beside_arrays(annotated: Any) -> Any:
    """Keep the metadata of ``Annotated`` around arrays, also in a union, since it may be the shape (G-068)."""
    inner = annotated.__origin__
    if typing.get_origin(inner) not in UNIONS:
        return annotated
    args = typing.get_args(inner)
    return typing.Union[  # noqa: UP007 - made at run time
        tuple(typing.Annotated[(one, *annotated.__metadata__)] if is_array(one) else one for one in args)
    ]


def _optional(union: Any) -> Any:
    """Return X of ``Optional[X]`` if X is a stream, a message, headers or the context; None otherwise.

    An ``Optional`` value stays as it is, since that value may really be None.
    """
    rest = [arg for arg in typing.get_args(union) if arg is not type(None)]
    if len(rest) != 1 or len(rest) == len(typing.get_args(union)):
        return None
    inner = _bare(rest[0])
    special = _stream(inner) or _origin(inner) in (Message, Headers)
    return inner if special or (isinstance(inner, type) and issubclass(inner, Context)) else None


def _origin(annotation: Any) -> Any:
    return typing.get_origin(annotation) or annotation


def _stream(annotation: Any) -> str:
    origin = _origin(annotation)
    if any(origin is stream for stream in _SYNC_STREAMS):
        return "sync"
    return "async" if any(origin is stream for stream in _ASYNC_STREAMS) else ""


def _item(annotation: Any) -> Any:
    return _bare(_raw_item(annotation))


def _raw_item(annotation: Any) -> Any:
    args = typing.get_args(annotation)
    return args[0] if args else Any


def _part(item: Any) -> tuple[Any, Take]:
    if _origin(item) is Message:
        args = typing.get_args(item)
        return (_bare(args[0]) if args else Any), Take.MESSAGE
    if isinstance(item, type) and issubclass(item, Headers):
        return IGNORED, Take.HEADERS
    return item, Take.PAYLOAD


def _value(annotation: Any) -> tuple[Any, Take, Constraints]:
    """The type of a value, the part of the message that the parameter takes, and the constraints of the annotation.

    Metadata that `Constraints` does not fully cover stays in the type, so that a codec applies it.
    """
    item, take = _part(_bare(annotation))
    if take is Take.MESSAGE:
        annotation = _raw_item(_bare(annotation))
    is_kept = take is not Take.HEADERS and unread(annotation)
    return _unnamed(annotation) if is_kept else item, take, constraints_of(annotation, kept=is_kept)


def _check_around(annotation: Any) -> None:
    """Refuse constraints on the iterator, which are meant for its values."""
    if unread(annotation) or constraints_of(annotation):
        raise SpecError("constraints on the values have no effect on the iterator; write Iterator[Annotated[int, ...]]")


def _output(name: str, annotation: Any) -> StreamSpec:
    item, take, said = _value(annotation)
    if take is Take.MESSAGE and _may_be_none(annotation):
        item = typing.Optional[item]  # noqa: UP045 - made at run time
    return StreamSpec(name, item, take, constraints=said)


def _may_be_none(annotation: Any) -> bool:
    """Whether the annotation is ``Optional``. Ask before `_bare`, which strips that from messages."""
    annotation = bare(annotation)
    return typing.get_origin(annotation) in UNIONS and type(None) in typing.get_args(annotation)


def _mentions_output(annotation: Any) -> bool:
    if typing.get_origin(annotation) in UNIONS:
        return any(_mentions_output(arg) for arg in typing.get_args(annotation))
    return _bare(annotation) is Output


def _several(annotation: Any) -> tuple[list[tuple[str, Any]], bool] | None:
    """The names and annotations of the iterators in a tuple, and whether their number is open; None for a value."""
    args = typing.get_args(annotation)
    is_open = typing.get_origin(annotation) is tuple and len(args) == 2 and args[1] is ...
    fields = [("out", args[0])] if is_open else () if is_typed_dict(annotation) else _fields(annotation) or ()
    found = [(name, _bare(field)) for name, field in fields]
    return (found, is_open) if any(_stream(field) for _, field in found) else None


def _returned_tuple(annotation: Any, fields: list[tuple[str, Any]], *, is_open: bool) -> Returned:
    for name, field in fields:
        if not _stream(field):
            raise TypeError(f"mixes iterators and values: '{name}' is {render(field)}; make each of them an iterator")
    kinds = {_stream(field) for _, field in fields}
    stream = kinds.pop() if len(kinds) == 1 else "mixed"
    outputs = () if is_open else tuple(_output(name, _raw_item(field)) for name, field in fields)
    return Returned(annotation, ResultShape.SEVERAL, outputs, stream, is_open)


def _with_parts(returned: Returned, value: Any) -> Returned:
    """Add the parts of each value to ``returned``, if a value is a tuple, a dict or a list."""
    fields = _fields(value)
    if fields is not None:
        parts = tuple(_output(name, annotation) for name, annotation in fields)
        return replace(returned, parts=parts, is_unnamed=typing.get_origin(value) is tuple)
    args = typing.get_args(value)
    if _origin(value) in _MAPPINGS:
        return replace(returned, each=_output("out", args[1] if len(args) == 2 else Any))
    if _origin(value) in _LISTS:
        return replace(returned, each=_output("out", args[0] if args else Any))
    return returned


def _fields(value: Any) -> list[tuple[str, Any]] | None:
    """The names and annotations of the parts of a value; None if it has no fixed number of parts."""
    args = typing.get_args(value)
    if typing.get_origin(value) is tuple:
        return None if ... in args or not args else [(f"out{index}", arg) for index, arg in enumerate(args)]
    is_named = isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")
    if not is_named and not is_typed_dict(value):
        return None
    found = members_of(value)
    return None if found is None else [(one.name, one.annotation) for one in found.properties]
