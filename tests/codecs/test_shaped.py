"""`invoker.codecs.shaped`: declared shapes, whatever media type an array came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker.codecs import Registry, builtin
from invoker.codecs.anyvalue import ANY
from invoker.codecs.anyvalue.pack import pack
from invoker.codecs.shaped import fitted_output, shaped
from invoker.codecs.tensor import TENSOR
from invoker.errors import DecodeError, EncodeError
from invoker.message import EMPTY, Message
from invoker.tensors import Casting, Code, GraphPipeError
from invoker.tensors.arrays import annotation_of
from invoker.tensors.declared import Tensor
from tests.codecs.wire import JSON, MSGPACK, decode, encode

REGISTRY = builtin(arrays=True, entry_points=False)
NPY = "application/x-npy"
Table = Annotated[NDArray[np.float32], ("batch", 3)]
Square = Annotated[NDArray[np.float32], ("n", "n")]


def sent(media_type: str, value: Any) -> bytes:
    """An array in one of the media types that arrays may have."""
    array = np.array(value, "f4")
    if media_type in (JSON, MSGPACK):
        return (msgspec.json if media_type == JSON else msgspec.msgpack).encode(array.tolist())
    return encode(media_type, array, REGISTRY)[1]


@pytest.mark.parametrize("type_", [Table, Table | None, annotation_of(Tensor("float32", ("batch", 3)))])
@pytest.mark.parametrize("media_type", [TENSOR, f"{TENSOR};type=float32;shape=2", NPY, JSON, MSGPACK])
def test_G062_a_shape_that_is_not_declared_is_refused(media_type: str, type_: Any) -> None:
    """In every form of an array, with the place, as GraphPipe does; the code is kept for it."""
    payload = np.float32([1, 2]).tobytes() if "shape=" in media_type else sent(media_type, [1, 2])
    with pytest.raises(DecodeError) as caught:
        decode(media_type, payload, type_, REGISTRY)
    assert caught.value.detail == "input #0: it has the shape [2], and [batch, 3] is declared"
    assert isinstance(caught.value.__cause__, GraphPipeError)
    assert caught.value.__cause__.code is Code.SHAPE


@pytest.mark.parametrize("media_type", [TENSOR, NPY, JSON, MSGPACK])
def test_G062_a_name_is_one_size_within_a_message(media_type: str) -> None:
    """And may be another in the next one."""
    for size in (1, 2):
        assert decode(media_type, sent(media_type, np.ones((size, size))), Square, REGISTRY).shape == (size, size)
    with pytest.raises(DecodeError, match="'n' is 2 already"):
        decode(media_type, sent(media_type, np.ones((2, 3))), Square, REGISTRY)


def test_what_declares_no_shape_costs_nothing() -> None:
    """The codec's own decoder is used: for other types, arrays of any shape, and unions of arrays."""

    def own(message: Any) -> Any:
        raise NotImplementedError

    for type_ in (int, list[float], Any, np.ndarray, Annotated[NDArray[Any], "words"], Table | Square):
        assert shaped(own, type_, "input #0") is own


def test_none_beside_an_array_has_no_shape() -> None:
    """What else a union takes is let through."""
    assert decode(JSON, b"null", Table | None, REGISTRY) is None


def test_a_shape_that_is_none_refuses_each_message() -> None:
    """Such a function is not served at all; a registry by itself says why."""
    with pytest.raises(DecodeError, match=r"declares a size 1\.5"):
        decode(JSON, b"[1]", Annotated[NDArray[Any], (1.5,)], Registry())


@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
def test_a_list_without_elements_has_the_declared_sizes(media_type: str) -> None:
    """It can say only one of them; named ones are 0, and a first size that is fixed is not."""
    assert decode(media_type, sent(media_type, []), Table, REGISTRY).shape == (0, 3)
    assert decode(media_type, sent(media_type, []), Square, REGISTRY).shape == (0, 0)
    with pytest.raises(DecodeError, match=r"it has the shape \[0\], and \[2, 3\] is declared"):
        decode(media_type, sent(media_type, []), Annotated[NDArray[np.float32], (2, 3)], REGISTRY)


@pytest.mark.parametrize("media_type", [TENSOR, NPY])
def test_a_tensor_without_elements_has_its_own_shape(media_type: str) -> None:
    """Which is said with it."""
    assert decode(media_type, sent(media_type, np.ones((0, 3))), Table, REGISTRY).shape == (0, 3)
    with pytest.raises(DecodeError, match=r"it has the shape \[0\]"):
        decode(media_type, sent(media_type, []), Table, REGISTRY)


@pytest.mark.parametrize("given", [np.ones((2, 2)), [[1.0, 2.0]], np.ones(3), 1.5])
@pytest.mark.parametrize("media_type", [TENSOR, NPY, JSON, MSGPACK])
def test_G066_an_output_of_a_shape_that_is_not_declared_is_refused(media_type: str, given: Any) -> None:
    """In every media type, also where a list or a number is given for an array."""
    encoder = REGISTRY.encoder(REGISTRY.offers(media_type), given)
    for type_ in (Table, Table | None):
        with pytest.raises(EncodeError, match=r"output: it has the shape \[.*\], and \[batch, 3\] is declared$"):
            fitted_output(encoder, type_, "output")(given)


@pytest.mark.parametrize("given", [np.ones((2, 3)), np.ones((0, 3)), [[1.0, 2.0, 3.0]]])
def test_an_output_of_the_declared_shape_is_encoded_as_ever(given: Any) -> None:
    """The codec is given the same value."""
    encoder = REGISTRY.encoder(REGISTRY.offers(JSON), given)
    assert fitted_output(encoder, Table, "output")(given) == encoder(given)


def test_only_arrays_are_measured() -> None:
    """None, ragged lists and what another member of the union allows are the codec's affair."""

    def own(value: Any) -> Any:
        return value

    assert fitted_output(own, Table | None, "output")(None) is None
    assert fitted_output(own, Table | str, "output")("x") == "x"
    assert fitted_output(own, Table, "output")([[1], [2, 3]]) == [[1], [2, 3]]
    for type_ in (int, NDArray[np.float32], Table | Square):
        assert fitted_output(own, type_, "output") is own


def test_G061_outputs_are_cast_where_the_author_wants_it() -> None:
    """By the rule same_kind, whether shapes are checked or not; what it does not allow is left as it is."""
    cast = Annotated[Table, Casting.SAME_KIND]
    seen: list[Any] = []
    for is_checked in (True, False):
        encode = fitted_output(seen.append, cast, "output", is_checked=is_checked)  # type: ignore[arg-type]
        for given in (np.ones((1, 3)), np.ones((1, 3), "i8"), [[1.5, 2.5, 3.5]], np.ones((1, 3), "c16")):
            encode(given)
        assert [one.dtype for one in seen] == ["f4", "f4", "f4", "c16"]
        seen.clear()
        with pytest.raises(EncodeError, match=r"output: 1e\+300 is out of range for float32"):
            encode(np.full((1, 3), 1e300))
    own = fitted_output(seen.append, Table, "output", is_checked=False)  # type: ignore[arg-type]
    assert own == seen.append


@dataclass
class Held:
    """An array within a class."""

    x: NDArray[np.float32]


NUMBERS = [(np.float32, 1e39, 1e38), (np.float16, 70000, 65504), (np.uint8, 256, 255), (np.int64, 2.0**63, 2.0)]


@pytest.mark.parametrize("wrap", [None, list, dict, Held])
@pytest.mark.parametrize(("scalar", "bad", "good"), NUMBERS)
def test_H261_numbers_beyond_an_array_are_refused_by_every_codec(scalar: Any, bad: Any, good: Any, wrap: Any) -> None:
    """Alone and within, as JSON, MessagePack and Any have them."""
    array = NDArray[scalar]
    cases: dict[Any, tuple[Any, Callable[[Any], Any]]] = {
        None: (array, lambda one: [one]),
        list: (list[array], lambda one: [[one]]),
        dict: (dict[str, array], lambda one: {"k": [one]}),
        Held: (Held, lambda one: {"x": [one]}),
    }
    type_, made = cases[wrap]
    if wrap is Held and scalar is not np.float32:
        return
    writers: dict[str, Callable[[Any], bytes]] = {
        "application/json": msgspec.json.encode, "application/x+json": msgspec.json.encode,
        "application/msgpack": msgspec.msgpack.encode, ANY: pack,
    }  # fmt: skip
    for media_type, write in writers.items():
        decode = builtin().decoder(media_type, type_)
        assert decode(Message(write(made(good)), EMPTY, media_type)) is not None
        with pytest.raises(DecodeError):
            decode(Message(write(made(bad)), EMPTY, media_type))
