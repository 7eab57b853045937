"""What single annotations mean, and how they are written out."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.author.annotations import read_annotation, read_parameter, read_return
from invoker.author.spec import IGNORED, WANTED, ResultShape, Take
from invoker.context import Context
from invoker.message import Headers, Message, Output

T = TypeVar("T")
N = TypeVar("N", bound=int)
Some = TypeVar("Some", int, str)


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    ("annotation", "kind", "item", "take"),
    [
        (int, "", int, Take.PAYLOAD),
        (Iterator, "sync", Any, Take.PAYLOAD),
        (Iterator[int], "sync", int, Take.PAYLOAD),
        (Generator[int, None, None], "sync", int, Take.PAYLOAD),
        (AsyncGenerator[str, None], "async", str, Take.PAYLOAD),
        (Iterator[Message[bytes]], "sync", bytes, Take.MESSAGE),
        (Message, "", Any, Take.MESSAGE),
        (Headers, "", IGNORED, Take.HEADERS),
        (Message[int] | None, "", int, Take.MESSAGE),
        (Annotated[Iterator[Annotated[int, 1]], 2], "sync", int, Take.PAYLOAD),
        (int | None, "", int | None, Take.PAYLOAD),
        (T, "", Any, Take.PAYLOAD),
        (Iterator[N], "sync", int, Take.PAYLOAD),
        (Some, "", int | str, Take.PAYLOAD),
        (AsyncGenerator[Some, None], "async", int | str, Take.PAYLOAD),
        (list[int], "", list[int], Take.PAYLOAD),
        (inspect.Parameter.empty, "", Any, Take.PAYLOAD),
    ],
)
def test_R040_parameters(annotation: Any, kind: str, item: Any, take: Take) -> None:
    """Stream or value, its item, and the part of the message."""
    reading = read_annotation(annotation)
    assert (reading.stream, reading.type, reading.take, reading.context) == (kind, item, take, False)


def test_the_context_is_seen_through_optional() -> None:
    """Subclasses too."""
    assert read_annotation(Context | None).context
    assert read_annotation(type("Mine", (Context,), {})).context


@pytest.mark.parametrize(
    ("annotation", "result", "stream", "outputs", "is_open"),
    [
        (int, ResultShape.VALUE, "", 1, False),
        (None, ResultShape.NOTHING, "", 0, False),
        (inspect.Parameter.empty, ResultShape.UNKNOWN, "", 0, True),
        (Iterator[int], ResultShape.STREAM, "sync", 1, False),
        (AsyncIterator[int], ResultShape.STREAM, "async", 1, False),
        (Iterator[Output], ResultShape.STREAM, "sync", 0, True),
        (Iterator[int | Output], ResultShape.STREAM, "sync", 0, True),
        (tuple[Iterator[int], Iterator[str]], ResultShape.SEVERAL, "sync", 2, False),
        (tuple[Iterator[int], ...], ResultShape.SEVERAL, "sync", 0, True),
        (tuple[Iterator[int], AsyncIterator[int]], ResultShape.SEVERAL, "mixed", 2, False),
        (tuple[int, ...], ResultShape.VALUE, "", 1, False),
        (tuple[int, str], ResultShape.VALUE, "", 1, False),
        (Pair, ResultShape.VALUE, "", 1, False),
        (Output, ResultShape.VALUE, "", 0, True),
        (Awaitable[AsyncIterator[int]], ResultShape.STREAM, "async", 1, False),
    ],
)
def test_R039_results(annotation: Any, result: ResultShape, stream: str, outputs: int, is_open: bool) -> None:
    """The shape of what is returned."""
    returned = read_return(annotation)
    assert (returned.result, returned.stream, len(returned.outputs), returned.open) == (
        result,
        stream,
        outputs,
        is_open,
    )


def test_G068_what_stands_beside_an_array_is_kept() -> None:
    """Its shape; beside other types nothing is, as before."""
    array = Annotated[NDArray[np.float32], ("batch", 3)]
    assert read_annotation(array).type == array
    assert read_annotation(Iterator[array]).type == array  # type: ignore[valid-type]
    assert read_return(array).outputs[0].type == array
    assert read_annotation(Annotated[int, ("batch", 3)]).type is int


def parameter(annotation: Any, name: str = "output_names") -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (tuple[str, ...], tuple),
        (list[str], list),
        (Sequence[str], tuple),
        (typing.Sequence[str], tuple),
        (list[str] | None, list),
        (Annotated[list[str], ["of outputs"]], list),
        (typing.Union[None, tuple[str, ...]], tuple),  # noqa: UP007 - as older code has it
    ],
)
def test_G060_the_names_of_wanted_outputs_are_no_input(annotation: Any, kind: type) -> None:
    """A tuple, or a list if that is annotated."""
    slot = read_parameter(parameter(annotation)).slot
    assert slot is not None
    assert (slot.index, slot.kind) == (WANTED, kind)


@pytest.mark.parametrize("annotation", [list[int], str, tuple[str], Any, list[str] | int, inspect.Parameter.empty])
def test_G060_other_parameters_of_that_name_are_inputs(annotation: Any) -> None:
    """So are those of another name, and those that the author calls inputs."""
    assert read_parameter(parameter(annotation)).slot is None
    assert read_parameter(parameter(list[str], "names")).slot is None
    assert read_parameter(parameter(list[str]), ("output_names",)).slot is None
