"""`invoker.codecs.interface`: what a codec is."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.codecs import Codec, JsonCodec, Offer, TextCodec
from invoker.codecs.interface import Specialised, payload_of, refusing
from invoker.errors import DecodeError
from invoker.mediatypes import parse
from invoker.message import Message


def test_the_built_in_codecs_are_codecs() -> None:
    """As users write them, too."""
    assert isinstance(JsonCodec(), Codec)
    assert JsonCodec.media_types == ("application/json",)
    assert JsonCodec(("a/b",)).media_types == ("a/b",)


def test_offers_are_compared_by_identity() -> None:
    """They are keys of caches; a codec need not be hashable."""
    one, other = (Offer(TextCodec(), parse("a/b")) for _ in range(2))
    assert one == one  # noqa: PLR0124 - the point
    assert one != other
    assert len({one, other}) == 2


def test_what_a_codec_does_not_say_it_does_not_do() -> None:
    """Two methods are its own."""
    bare = Specialised(("a/b",))
    with pytest.raises(NotImplementedError):
        bare.decoder(parse("a/b"), Any, "")
    with pytest.raises(NotImplementedError):
        bare.encoder(Offer(bare, parse("a/b")), int, "")
    assert bare.can_decode(int)
    assert bare.accepts(parse("a/b;c=d"))


def test_small_closures() -> None:
    """The payload as it is, and nothing but an error."""
    assert payload_of(Message(b"x")) == b"x"
    with pytest.raises(DecodeError, match="no"):
        refusing(DecodeError("no"))(Message(b""))
