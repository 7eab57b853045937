"""`invoker.protocols.graphpipe.model`: functions as models, and what metadata says of them."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Context, function
from invoker.author.reader import read
from invoker.codecs.tensor import TENSOR
from invoker.errors import SpecError
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.model import Model
from invoker.tensors import IOMetadata, TensorType, listing, read_metadata_response
from tests.protocols.graphpipe.asking import model_of

Images = Annotated[NDArray[np.float32], ("batch", 28, 28), "grey pixels"]


class Found(NamedTuple):
    """Two outputs."""

    scores: Iterator[Annotated[NDArray[np.float32], ("batch", 10)]]
    labels: Iterator[NDArray[np.object_]]


class Jumbled(NamedTuple):
    """Three, not by the alphabet."""

    z: Iterator[Annotated[NDArray[np.float32], (-1, 0, 3)]]
    a: Iterator[NDArray[np.int8]]
    m: Iterator[Annotated[NDArray[np.int8], (-1, -1)]]


def predict(images: Images, threshold: float = 0.5) -> Found:
    """Say what is on images.

    At some length.
    """
    raise NotImplementedError


def test_G087_G088_metadata_is_what_annotations_say() -> None:
    """In declared order; a binary reader gets the same."""
    model = model_of(predict)
    metadata = model.metadata
    assert (metadata.name, metadata.server, metadata.description) == (
        "predict",
        "invoker/test",
        "Say what is on images.",
    )
    assert metadata.inputs == (
        IOMetadata("images", "grey pixels [batch, 28, 28]", (-1, 28, 28), TensorType.FLOAT32),
        IOMetadata("threshold", "(optional)", (), TensorType.FLOAT64),
    )
    assert metadata.outputs == (
        IOMetadata("scores", "[batch, 10]", (-1, 10), TensorType.FLOAT32),
        IOMetadata("labels", "", (), TensorType.STRING),
    )
    assert read_metadata_response(model.metadata_buffer) == metadata


def test_G088_G091_declared_order_and_sizes_are_kept() -> None:
    """Neither the alphabet nor the kind of a parameter puts one before another; any size is -1, not 0."""

    def jumbled(z: NDArray[np.int8], a: int, m: Annotated[NDArray[np.int8], (-1, 0)], *, b: int = 3) -> Jumbled:
        raise NotImplementedError

    model = model_of(jumbled)
    listed = listing(model.metadata)
    binary = read_metadata_response(model.metadata_buffer)
    for inputs, outputs in (
        (
            [(one.name, list(one.shape)) for one in binary.inputs],
            [(one.name, list(one.shape)) for one in binary.outputs],
        ),
        tuple([(one["Name"], one["Shape"]) for one in listed[which]] for which in ("Inputs", "Outputs")),
    ):
        assert inputs == [("z", []), ("a", []), ("m", [-1, 0]), ("b", [])]
        assert outputs == [("z", [-1, 0, 3]), ("a", []), ("m", [-1, -1])]


def test_G100_the_listing_agrees_with_the_buffer() -> None:
    """Field by field, since both are of one object."""
    model = model_of(predict)
    listed = listing(model.metadata)
    binary = read_metadata_response(model.metadata_buffer)
    for key in ("Name", "Version", "Server", "Description"):
        assert listed[key] == getattr(binary, key.lower())
    for key in ("Inputs", "Outputs"):
        found = [(one["Name"], one["Description"], tuple(one["Shape"]), one["Type"]) for one in listed[key]]
        assert found == [(one.name, one.description, one.shape, one.type) for one in getattr(binary, key.lower())]
    names = [(one["Name"], one["TypeName"]) for key in ("Inputs", "Outputs") for one in listed[key]]
    assert names == [("images", "Float32"), ("threshold", "Float64"), ("scores", "Float32"), ("labels", "String")]


def test_G068_an_undeclared_function_has_null_types() -> None:
    """And no shapes."""

    def plain(x, y=3):  # type: ignore[no-untyped-def]
        return x

    model = model_of(plain)
    assert [(one.name, one.types, one.shape) for one in model.inputs] == [("x", None, None), ("y", None, None)]
    assert model.metadata.inputs[0] == IOMetadata("x")
    assert model.metadata.outputs == (IOMetadata("output0"),)


def test_G069_names_and_aliases() -> None:
    """A parameter's own name beats an alias; outputs without names are numbered."""

    def swap(input1: int, b: int) -> int:
        return input1 - b

    model = model_of(swap)
    assert [model.input_index(name) for name in ("input1", "b", "input0", "c")] == [0, 1, 0, None]
    assert [model.output_index(name) for name in ("output0", "out", "output1")] == [0, 0, None]
    named = model_of(predict)
    assert [named.output_index(name) for name in ("labels", "output1", "scores", "x")] == [1, 1, 0, None]


def test_G090_plain_annotations_have_types() -> None:
    """Which take what the annotation can be made of."""

    def plain(a: int, b: float, c: bool, d: str, e: bytes, f: list[int]) -> float:
        raise NotImplementedError

    model = model_of(plain, has_arrays=False)
    assert [one.type for one in model.inputs] == [
        TensorType.INT64,
        TensorType.FLOAT64,
        TensorType.UINT8,
        TensorType.STRING,
        TensorType.STRING,
        TensorType.NULL,
    ]
    assert TensorType.INT8 in (model.inputs[0].types or ())
    assert TensorType.FLOAT32 not in (model.inputs[0].types or ())


@pytest.mark.parametrize(
    ("annotation", "type_", "types"),
    [
        (NDArray[np.float16], TensorType.FLOAT16, {TensorType.FLOAT16}),
        (NDArray[np.bool_], TensorType.UINT8, {TensorType.UINT8}),
        (NDArray[np.str_], TensorType.STRING, {TensorType.STRING}),
        (NDArray[np.floating], TensorType.NULL, {TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64}),
        (NDArray[np.longlong], TensorType.INT64, {TensorType.INT64}),
        (NDArray[np.complex128], TensorType.NULL, set()),
        (NDArray[Any], TensorType.NULL, None),
        (NDArray[np.int8] | None, TensorType.INT8, {TensorType.INT8}),
    ],
)
def test_G061_arrays_take_their_type_only(annotation: Any, type_: TensorType, types: set[TensorType] | None) -> None:
    """Abstract ones several."""

    def take(x):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    take.__annotations__["x"] = annotation
    (port,) = model_of(take).inputs
    assert (port.type, port.types, port.media_type) == (type_, types, TENSOR)


def test_G068_what_may_be_none_is_what_it_is_else() -> None:
    """No tensor is None; its shape and casting hold all the same."""

    @function(options=[graphpipe.Casting(inputs="same_kind")])
    def masked(
        x: NDArray[np.float32],
        mask: Annotated[NDArray[np.float32], ("n", 2)] | None = None,
        other: Annotated[NDArray[np.float32] | None, ("n",)] = None,
        k: int | None = None,
    ) -> NDArray[np.float32]:
        raise NotImplementedError

    _, mask, other, k = model_of(masked).inputs
    assert (other.type, other.shape, other.is_optional) == (TensorType.FLOAT32, ("n",), True)
    assert (mask.type, mask.shape, mask.is_optional) == (TensorType.FLOAT32, ("n", 2), True)
    assert TensorType.FLOAT64 in (mask.types or ())
    assert (k.type, k.is_single) == (TensorType.INT64, True)


def test_G074_the_form_follows_the_function() -> None:
    """Tensors where arrays are known, else values; declared media types win; none is none."""

    @function(input_types={"a": "application/json", "b": "image/png"}, output_types="image/png")
    def declared(a: Any, b: bytes) -> bytes:
        raise NotImplementedError

    model = model_of(declared)
    assert [one.media_type for one in (*model.inputs, *model.outputs)] == ["application/json", "", "image/png"]

    def plain(a: NDArray[np.int8], b: int, c: str, d: bytes, e: Any) -> int:
        raise NotImplementedError

    forms = [one.media_type for one in (*model_of(plain).inputs, *model_of(plain).outputs)]
    assert forms == [TENSOR, "application/msgpack", "text/plain", "application/octet-stream", TENSOR, TENSOR]


def test_functions_without_inputs_and_with_any_number() -> None:
    """None is listed; further ones are numbered; a context is none."""

    def nothing(ctx: Context) -> int:
        raise NotImplementedError

    def several(first: int, *rest: int) -> int:
        raise NotImplementedError

    assert model_of(nothing).inputs == ()
    model = model_of(several)
    assert [one.name for one in model.inputs] == ["first", "rest"]
    rest = model.spec.call.parameters[-1]
    assert [model.port(name, rest).own for name in ("#1", "#2")] == ["rest", "rest2"]
    assert (model.port("#2", rest).name, model.port("#2", rest).bound) == ("input2", "#2")


def test_a_wrong_shape_stops_the_start() -> None:
    """With the function and the input."""

    def wrong(x: Annotated[NDArray[np.int8], (1.5,)]) -> None:
        raise NotImplementedError

    with pytest.raises(SpecError, match="input 'x' of 'wrong' declares a size"):
        model_of(wrong)


def test_G087_the_version_is_that_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or of its package."""
    module = types.ModuleType("somewhere")
    module.__version__ = "1.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somewhere", module)
    for entrypoint, version in (("somewhere:predict", "1.2"), ("somewhere.inner:predict", "1.2"), ("x:predict", "")):
        model = Model(read(predict, entrypoint=entrypoint), has_arrays=True)
        assert model.metadata.version == version
