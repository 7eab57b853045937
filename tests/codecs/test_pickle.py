"""`invoker.codecs.pickle`: only for those who opted in."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Registry, builtin
from invoker.errors import DecodeError, EncodeError, NotAcceptable, UnsupportedMediaType
from tests.codecs.wire import PATIENT, Point, decode, encode, survives

PICKLE = "application/x-python-pickle"
TRUSTING = builtin(pickle=True, entry_points=False)


class Quits:
    """Its pickle ends the process that loads it."""

    def __reduce__(self) -> Any:
        return (exit_now, ())


class Refuses:
    """It does not let itself be pickled."""

    def __reduce__(self) -> Any:
        raise KeyboardInterrupt


def exit_now() -> None:
    raise SystemExit(3)


def test_pickles_are_there_by_opt_in_only() -> None:
    """Neither in nor out."""
    for registry in (Registry(), builtin(entry_points=False)):
        with pytest.raises(UnsupportedMediaType):
            registry.decoder(PICKLE, Any)
        with pytest.raises(NotAcceptable):
            registry.offers(PICKLE)


def test_values_round_trip() -> None:
    """Whatever Python can hold."""
    for value in (Point(1), {1, 2}, object, None, 1j):
        media_type, payload = encode(PICKLE, value, TRUSTING)
        assert media_type == PICKLE
        assert decode(media_type, payload, registry=TRUSTING) == value
    assert decode(PICKLE, pickle.dumps(Point(1)), Point | None, TRUSTING) == Point(1)
    assert decode(PICKLE, pickle.dumps([1]), list[int], TRUSTING) == [1]


def test_a_wildcard_never_means_pickles() -> None:
    """Not even for what nothing else takes."""
    assert PICKLE not in [offer.media_type.essence for offer in TRUSTING.offers("*/*, application/*")]
    with pytest.raises(EncodeError):
        encode("*/*", object(), TRUSTING)


def test_R123_what_a_pickle_does_stays_within() -> None:
    """Ending the process included; classes are checked."""
    for payload, type_ in (
        (pickle.dumps(Quits()), Any),
        (b"", Any),
        (b"cnowhere\nx\n.", Any),
        (pickle.dumps(1), Point),
    ):
        with pytest.raises(DecodeError, match="input #0: application/x-python-pickle"):
            decode(PICKLE, payload, type_, TRUSTING)
    for value in (Refuses(), lambda: None):
        with pytest.raises(EncodeError, match="output #0"):
            encode(PICKLE, value, TRUSTING)


@PATIENT
@given(st.binary(max_size=8).map(lambda noise: pickle.dumps([1, {"a": noise}])), st.integers(0, 200))
def test_a_truncated_pickle_is_a_decode_error(payload: bytes, length: int) -> None:
    """Wherever it ends. (Arbitrary bytes are arbitrary code, which a test does not run.)"""
    survives(lambda: decode(PICKLE, payload[:length], Any, TRUSTING))
