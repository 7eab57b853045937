"""`invoker.codecs.several`: tuples as several values in one message."""

from __future__ import annotations

import numpy as np
import pytest

from invoker.codecs import builtin
from invoker.codecs.several import SEVERAL, several_in
from invoker.codecs.tensor import TENSOR, tensor_in
from invoker.errors import EncodeError, NotAcceptable, UnsupportedMediaType

ARRAYS, PLAIN = builtin(arrays=True, entry_points=False), builtin(arrays=False, entry_points=False)


def test_parts_are_what_another_codec_makes_of_them() -> None:
    """Tensors where there are arrays, else MessagePack; the payload is not copied."""
    value = (np.float32([1, 2]), 3, "x")
    message = ARRAYS.encoder(ARRAYS.offers(SEVERAL), value)(value)
    parts = several_in(message)
    assert message.media_type == SEVERAL
    assert [one.media_type for one in parts] == [TENSOR] * 3
    assert [tensor_in(one).shape for one in parts] == [(2,), (), ()]
    assert bytes(tensor_in(parts[0]).data) == np.float32([1, 2]).tobytes()  # type: ignore[arg-type]
    plain = several_in(PLAIN.encoder(PLAIN.offers(SEVERAL), (1, []))((1, [])))
    assert [(one.media_type, bytes(one.payload)) for one in plain] == [
        ("application/msgpack", b"\x01"),
        ("application/msgpack", b"\x90"),
    ]
    assert several_in(PLAIN.encoder(PLAIN.offers(SEVERAL), ())(())) == []


def test_only_tuples_are_several() -> None:
    """Other values take the next form that is accepted."""
    offers = ARRAYS.offers(f"{SEVERAL}, {TENSOR};q=0.9")
    for value in ([1, 2], np.ones(2), 1):
        assert ARRAYS.encoder(offers, value)(value).media_type == TENSOR
    with pytest.raises(EncodeError):
        ARRAYS.encoder(ARRAYS.offers(SEVERAL), [1])


def test_a_part_that_has_no_form_is_named() -> None:
    """With its place."""
    with pytest.raises(EncodeError, match=r"output #0, part 1: object cannot be application/msgpack"):
        PLAIN.encoder(PLAIN.offers(SEVERAL), ())((1, object()))


def test_no_peer_meets_it_by_a_wildcard_and_none_can_send_it() -> None:
    """It is a form between a function and its session."""
    for accept in ("*/*", "application/*"):
        assert SEVERAL not in {one.media_type.essence for one in PLAIN.offers(accept)}
    with pytest.raises(UnsupportedMediaType):
        PLAIN.decoder(SEVERAL, object)
    with pytest.raises(NotAcceptable):
        PLAIN.offers("application/vnd.invoker.nothing")
